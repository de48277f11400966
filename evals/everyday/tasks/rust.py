"""Work on a small crate, with the real `cargo`."""

from __future__ import annotations

from model import Task
from place import Site
from tasks.steps import edit, listing, read, run

MANIFEST = '[package]\nname = "figures"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n'
LIBRARY = """\
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() + 1) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_mean_of_two_values() {
        assert_eq!(super::mean(&[1.0, 3.0]), 2.0);
    }
}
"""
RIGHT = LIBRARY.replace("(values.len() + 1)", "values.len()")
MAIN = """\
fn main() {
    let file = std::env::args().nth(1).expect("a file");
    let total: i64 = std::fs::read_to_string(file).unwrap().lines().filter_map(|l| l.parse::<i64>().ok()).sum();
    println!("total {total}");
}
"""


def _crate(library: str, main: str | None = None):
    def before(site: Site) -> None:
        site.write("Cargo.toml", MANIFEST)
        site.write("src/lib.rs", library)
        site.write("README.md", "# Figures\n\nA crate for figures.\n")
        if main is not None:
            site.write("src/main.rs", main)
            site.write("data.csv", "3\n4\n5\n")
        site.write(".gitignore", "target/\n.env\n")
        site.commit("Begin")

    return before


TASKS = [
    Task(
        "cargo_fix_test",
        "A test of this crate fails. Find out why and repair the code, then run the tests again.",
        lambda site: [
            listing(),
            run("cargo", "test", "--offline", may_fail=True),
            read("src/lib.rs"),
            edit("src/lib.rs", "(values.len() + 1) as f64", "values.len() as f64"),
            run("cargo", "test", "--offline"),
            run("git", "diff", "--stat"),
        ],
        before=_crate(LIBRARY),
        done=lambda site: "values.len() as f64" in site.text("src/lib.rs"),
    ),
    Task(
        "cargo_add_function",
        "Add a function `range` to the library that gives the largest value minus the smallest one, with a test, and check that all tests pass.",
        lambda site: [
            read("src/lib.rs"),
            edit(
                "src/lib.rs",
                "#[cfg(test)]\nmod tests {\n",
                "pub fn range(values: &[f64]) -> f64 {\n    let highest = values.iter().copied().fold(f64::MIN, f64::max);\n"
                "    highest - values.iter().copied().fold(f64::MAX, f64::min)\n}\n\n#[cfg(test)]\nmod tests {\n"
                "    #[test]\n    fn the_range() {\n        assert_eq!(super::range(&[1.0, 4.0, 2.0]), 3.0);\n    }\n\n",
            ),
            run("cargo", "test", "--offline"),
            run("cargo", "fmt", "--check", may_fail=True),
        ],
        before=_crate(RIGHT),
        done=lambda site: "pub fn range" in site.text("src/lib.rs"),
    ),
    Task(
        "cargo_fmt_commit",
        'Format the code of this crate and commit that with the message "Format the code".',
        lambda site: [
            run("cargo", "fmt"),
            run("git", "status", "--short"),
            run("git", "add", "-A"),
            run("git", "commit", "-m", "Format the code"),
            run("git", "log", "--oneline", "-n", "3"),
        ],
        before=_crate(RIGHT.replace("    values", "        values")),
        done=lambda site: site.git("log", "-1", "--format=%s").strip() == "Format the code",
    ),
    Task(
        "cargo_run",
        "Run the program on data.csv and tell me the total.",
        lambda site: [run("cargo", "run", "--offline", "--quiet", "--", "data.csv")],
        before=_crate(RIGHT, MAIN),
    ),
]
