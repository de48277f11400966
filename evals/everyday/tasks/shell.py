"""Pipes, shells and the small programs of every day."""

from __future__ import annotations

from model import Task
from place import Site
from tasks.steps import read, run, search, shell

LOG = "".join(f"2026-11-1{day} 0{hour}:15 {kind} job {hour}\n" for day in (7, 8) for hour in (1, 2, 3) for kind in ("INFO", "ERROR"))
MAKEFILE = "check:\n\t@test -s data.csv\n\t@echo checked\n"
PATCH = """\
--- a/greet.py
+++ b/greet.py
@@ -1,2 +1,2 @@
 def greet(name):
-    return "Helo " + name
+    return "Hello " + name
"""


def _pictures(site: Site) -> None:
    for name in ("one", "two three", "four"):
        site.write(f"pictures/{name}.jpeg", f"picture {name}\n")
    (site.workspace / "pictures" / "newest").symlink_to("four.jpeg")


def _patch(site: Site) -> None:
    site.write("greet.py", 'def greet(name):\n    return "Helo " + name\n')
    (site.workspace / "fix.patch").write_text(PATCH)
    site.commit("Begin")


def _many(site: Site) -> None:
    site.write("docs/a.md", "The colour of the door.\n")
    site.write("docs/b.md", "Colours, and one colour more.\n")


def _gone(site: Site) -> bool:
    return not list((site.workspace / "pictures").glob("*.jpeg"))


TASKS = [
    Task(
        "shell_pipe",
        "How many errors per hour are in app.log?",
        lambda site: [shell("grep ERROR app.log | cut -c 1-13 | sort | uniq -c | sort -rn")],
        before=lambda site: site.write("app.log", LOG),
    ),
    Task(
        "shell_rename",
        "Rename all .jpeg files in pictures to .jpg.",
        lambda site: [
            run("ls", "-l", "pictures"),
            shell('for f in pictures/*.jpeg; do mv -- "$f" "${f%.jpeg}.jpg"; done && ln -sf four.jpg pictures/newest'),
            run("ls", "-l", "pictures"),
        ],
        before=_pictures,
        done=_gone,
    ),
    Task(
        "shell_archive",
        "Pack the folder docs into docs.tar.gz and show me what is in it.",
        lambda site: [run("tar", "-czf", "docs.tar.gz", "docs"), run("tar", "-tzf", "docs.tar.gz")],
        before=_many,
        done=lambda site: (site.workspace / "docs.tar.gz").stat().st_size > 100,
    ),
    Task(
        "shell_replace",
        "Write color instead of colour in all files below docs.",
        lambda site: [
            search("olour", path="docs"),
            run("sed", "-i", "s/olour/olor/g", "docs/a.md", "docs/b.md"),
            search("olour", path="docs"),
        ],
        before=_many,
        done=lambda site: "olour" not in site.text("docs/a.md") + site.text("docs/b.md"),
    ),
    Task(
        "shell_make",
        "Run make check.",
        lambda site: [read("Makefile"), run("make", "check")],
        before=lambda site: (site.write("Makefile", MAKEFILE), site.write("data.csv", "1\n"))[0],
    ),
    Task(
        "shell_patch",
        "Apply fix.patch and commit the result as \"Greet politely\".",
        lambda site: [
            read("fix.patch"),
            run("git", "apply", "fix.patch"),
            run("git", "commit", "-m", "Greet politely", "greet.py"),
        ],
        before=_patch,
        done=lambda site: "Hello" in site.git("show", "HEAD:greet.py"),
    ),
    Task(
        "shell_biggest",
        "Which are the three longest files here, by lines?",
        lambda site: [shell("find . -type f -not -path './.git/*' | xargs -d '\\n' wc -l | sort -rn | head -n 4")],
        before=_many,
    ),
    Task(
        "shell_tidy",
        "Delete the folder build and make the scripts in tools executable.",
        lambda site: [
            run("ls", "-lR", "build", "tools"),
            run("rm", "-r", "build"),
            run("chmod", "+x", "tools/deploy.sh", "tools/clean.sh"),
        ],
        before=lambda site: [
            site.write(path, "#!/bin/sh\n:\n") for path in ("build/one.txt", "build/deep/two.txt", "tools/deploy.sh", "tools/clean.sh")
        ][0],
        done=lambda site: not (site.workspace / "build").exists() and (site.workspace / "tools/deploy.sh").stat().st_mode & 0o100 != 0,
    ),
    Task(
        "find_usages",
        "Where is MAX_RETRIES used, and what is its value?",
        lambda site: [search("MAX_RETRIES"), read("lib/limits.py")],
        before=lambda site: (site.write("lib/limits.py", "MAX_RETRIES = 5\n"), site.write("lib/send.py", "from lib.limits import MAX_RETRIES\n"))[0],
    ),
]
