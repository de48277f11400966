"""Work with git in the workspace's own repository."""

from __future__ import annotations

from model import Task
from place import Site
from tasks.steps import edit, read, run, write

PARSER = "def parse(line):\n    return line.split(',')\n"


def _history(site: Site) -> None:
    site.write(".gitignore", ".env\n")
    site.write("README.md", "# Parser\n")
    site.write("parser.py", PARSER)
    site.commit("Begin the parser", "2026-10-01T10:00:00Z")
    site.git("tag", "v1.0")
    site.write("notes.md", "- strip blanks\n")
    site.commit("Note what is missing", "2026-10-05T10:00:00Z")
    site.write("check.py", "import parser_check\n")
    site.write("parser_check.py", "assert 'a,b'.split(',') == ['a', 'b']\n")
    site.commit("Check the parser", "2026-10-09T10:00:00Z")


def _edited(site: Site) -> None:
    _history(site)
    site.write("parser.py", PARSER.replace("split(',')", "strip().split(',')"))


def _conflict(site: Site) -> None:
    _history(site)
    site.git("checkout", "-q", "-b", "tabs")
    site.write("parser.py", PARSER.replace("','", "'\\t'"))
    site.commit("Split at tabs", "2026-10-10T10:00:00Z")
    site.git("checkout", "-q", "main")
    site.write("parser.py", PARSER.replace("','", "';'"))
    site.commit("Split at semicolons", "2026-10-11T10:00:00Z")


def _broken(site: Site) -> None:
    _history(site)
    for number in range(1, 6):
        site.write("value.py", f"VALUE = {number if number < 4 else -number}\n")
        site.write("positive.py", "from value import VALUE\nassert VALUE > 0\n")
        site.commit(f"Step {number}", f"2026-10-1{number}T10:00:00Z")


def _last(site: Site) -> str:
    return site.git("log", "-1", "--format=%s").strip()


TASKS = [
    Task(
        "git_since_release",
        "What has changed in this repository since the tag v1.0?",
        lambda site: [
            run("git", "status"),
            run("git", "log", "--oneline", "v1.0..HEAD"),
            run("git", "diff", "--stat", "v1.0..HEAD"),
        ],
        before=_history,
    ),
    Task(
        "git_commit_dictated",
        'Commit my change to parser.py with the message "Strip blanks before splitting".',
        lambda site: [
            run("git", "status", "--short"),
            run("git", "diff", "parser.py"),
            run("git", "add", "parser.py"),
            run("git", "commit", "-m", "Strip blanks before splitting"),
            run("git", "log", "-1", "--stat"),
        ],
        before=_edited,
        done=lambda site: _last(site) == "Strip blanks before splitting",
    ),
    Task(
        "git_commit_worded",
        "Look at what I changed and commit it with a fitting message.",
        lambda site: [
            run("git", "status", "--short"),
            run("git", "diff"),
            run("git", "commit", "-am", "Strip lines before they are split"),
        ],
        before=_edited,
        done=lambda site: _last(site) == "Strip lines before they are split",
    ),
    Task(
        "git_branch",
        "Make a branch called docs, add a usage section to README.md there and commit it, then merge the branch into main.",
        lambda site: [
            run("git", "checkout", "-b", "docs"),
            read("README.md"),
            edit("README.md", "# Parser\n", "# Parser\n\n## Usage\n\nCall `parse(line)`.\n"),
            run("git", "add", "README.md"),
            run("git", "commit", "-m", "Describe the usage"),
            run("git", "checkout", "main"),
            run("git", "merge", "--no-ff", "-m", "Merge the usage", "docs"),
            run("git", "log", "--oneline", "--graph", "-n", "5"),
        ],
        before=_history,
        done=lambda site: "## Usage" in site.git("show", "main:README.md"),
    ),
    Task(
        "git_bisect",
        "`python3 positive.py` worked at v1.0 plus four commits and fails now. Which commit broke it?",
        lambda site: [
            run("git", "log", "--oneline"),
            run("git", "bisect", "start", "HEAD", "HEAD~3"),
            run("git", "bisect", "run", "python3", "-B", "positive.py"),
            run("git", "bisect", "reset"),
        ],
        before=_broken,
        done=lambda site: not (site.workspace / ".git" / "BISECT_LOG").exists(),
    ),
    Task(
        "git_conflict",
        "Merge the branch tabs into main. Where they conflict, tabs is right.",
        lambda site: [
            run("git", "merge", "tabs", may_fail=True),
            run("git", "status", "--short"),
            read("parser.py"),
            write("parser.py", PARSER.replace("','", "'\\t'")),
            run("git", "add", "parser.py"),
            run("git", "commit", "--no-edit"),
        ],
        before=_conflict,
        done=lambda site: "\\t" in site.git("show", "HEAD:parser.py") and len(site.git("log", "-1", "--format=%P").split()) == 2,
    ),
    Task(
        "git_changelog",
        "Write CHANGELOG.md from the commits since v1.0.",
        lambda site: [
            run("git", "log", "--format=%s", "v1.0..HEAD"),
            write("CHANGELOG.md", "# Changes\n\n- Check the parser\n- Note what is missing\n"),
        ],
        before=_history,
        done=lambda site: "Check the parser" in site.text("CHANGELOG.md"),
    ),
    Task(
        "git_revert",
        "Revert the last commit.",
        lambda site: [
            run("git", "log", "-2", "--oneline"),
            run("git", "revert", "--no-edit", "HEAD"),
            run("git", "status", "--short"),
        ],
        before=_history,
        done=lambda site: _last(site).startswith("Revert"),
    ),
    Task(
        "git_tag",
        'Tag the present commit as v1.1 with the message "Second release".',
        lambda site: [run("git", "tag", "-a", "v1.1", "-m", "Second release"), run("git", "tag", "-n")],
        before=_history,
        done=lambda site: "v1.1" in site.git("tag"),
    ),
]
