//! The reviewed list of types that nothing executes or follows by itself: sources, documents, data, pictures.
//!
//! A run that has seen untrusted text may leave these without a question; everything else that it leaves waits for a person. The table of known files comes first: a `package.json` is
//! no data and a `conftest.py` no plain source. Sources decide what a person's own build or test does, and a run cannot work without writing them.

/// Endings of inert files, in small letters.
#[rustfmt::skip]
const EXTENSIONS: [&str; 154] = [
    // Sources.
    "adb", "ads", "asm", "astro", "awk", "bash", "c", "cc", "clj", "cljs", "coffee", "cpp", "cr", "cs", "css", "cts", "cu", "cxx", "d", "dart", "elm",
    "erl", "ex", "exs", "f90", "fish", "fs", "fsx", "glsl", "go", "graphql", "groovy", "h", "hh", "hpp", "hrl", "hs", "htm", "html", "hxx", "java", "jl",
    "js", "jsx", "kt", "kts", "less", "lhs", "lisp", "ll", "lua", "m", "mjs", "cjs", "ml", "mli", "mm", "mts", "nim", "pas", "php", "pl", "pm", "proto",
    "ps1", "py", "pyi", "pyx", "r", "rb", "rkt", "rs", "s", "sass", "scala", "scm", "scss", "sh", "sol", "sql", "styl", "sv", "svelte", "swift", "tcl",
    "ts", "tsx", "v", "vb", "vhd", "vue", "wat", "wgsl", "zig", "zsh",
    // Documents.
    "adoc", "bib", "diff", "doc", "docx", "epub", "md", "odp", "ods", "odt", "org", "patch", "pdf", "pptx", "rst", "rtf", "tex", "txt", "xlsx",
    // Data.
    "avro", "csv", "dat", "geojson", "gz", "ics", "ipynb", "json", "jsonl", "log", "lst", "ndjson", "out", "parquet", "po", "pot", "snap", "tar", "tsv",
    "vcf", "xml", "zip",
    // Pictures, sound, film, type.
    "avif", "bmp", "flac", "gif", "ico", "jpeg", "jpg", "mp3", "mp4", "ogg", "otf", "png", "svg", "ttf", "wav", "webm", "webp", "woff2",
];

/// Names with a dot in front that tell tools only what to pass over, or hold a directory.
const DOT_FILES: [&str; 12] = [
    ".coverage",
    ".dockerignore",
    ".eslintignore",
    ".gitignore",
    ".gitkeep",
    ".ignore",
    ".keep",
    ".mailmap",
    ".nojekyll",
    ".npmignore",
    ".prettierignore",
    ".rgignore",
];

/// Directories with a dot in front whose files are inert if their types are.
const DOT_DIRECTORIES: [&str; 3] = [".", ".changeset", ".github"];

/// Whether a file is executable, by its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Executable,
    Plain,
}

/// Whether a file of this path, in small letters and in parts, is of an inert type.
pub(super) fn is_inert(parts: &[&str], mode: Mode) -> bool {
    let Some((name, above)) = parts.split_last() else { return false };
    if DOT_FILES.contains(name) {
        return true;
    }
    if name.starts_with('.') || above.iter().any(|part| part.starts_with('.') && !DOT_DIRECTORIES.contains(part)) {
        return false;
    }
    match name.rsplit_once('.') {
        Some((_, "pyc")) => above.last() == Some(&"__pycache__"),
        // The output of a compiler, which no ending tells from a list of results.
        Some((_, "out")) => mode == Mode::Plain,
        Some((_, extension)) => EXTENSIONS.contains(&extension),
        // `Makefile`, `Brewfile`, `Procfile`: a name like these is an instruction to some tool.
        None => mode == Mode::Plain && !name.ends_with("file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_nobody_reviewed_are_not_inert() {
        let cases = [
            ("src/main.rs", Mode::Plain, true),
            ("tools/deploy.sh", Mode::Executable, true),
            ("notes.md", Mode::Plain, true),
            ("summary.csv", Mode::Plain, true),
            ("docs.tar.gz", Mode::Plain, true),
            ("license", Mode::Plain, true),
            ("sometoolfile", Mode::Plain, false),
            ("pre-push", Mode::Executable, false),
            ("a.out", Mode::Executable, false),
            (".gitignore", Mode::Plain, true),
            (".toolrc", Mode::Plain, false),
            (".toolrc.json", Mode::Plain, false),
            (".tool/notes.md", Mode::Plain, false),
            (".github/issue_template/bug.md", Mode::Plain, true),
            ("lib.so", Mode::Plain, false),
            ("tool.toml", Mode::Plain, false),
            ("site.yml", Mode::Plain, false),
            ("__pycache__/a.pyc", Mode::Plain, true),
            ("a.pyc", Mode::Plain, false),
            ("name.", Mode::Plain, false),
        ];
        for (path, mode, expected) in cases {
            assert_eq!(is_inert(&path.split('/').collect::<Vec<_>>(), mode), expected, "{path}");
        }
    }
}
