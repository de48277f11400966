"""Work with node and npm, without a network."""

from __future__ import annotations

from model import Task
from place import Site
from tasks.steps import edit, read, run, write

PACKAGE = """\
{
  "name": "slug",
  "version": "1.4.0",
  "main": "slug.js",
  "scripts": { "test": "node --test", "build": "node build.js" }
}
"""
SLUG = "exports.slug = (text) => text.toLowerCase().replace(' ', '-');\n"
TEST = """\
const test = require('node:test');
const assert = require('node:assert');
const { slug } = require('./slug.js');

test('several words', () => assert.strictEqual(slug('One Two Three'), 'one-two-three'));
"""
BUILD = "const fs = require('fs');\nfs.mkdirSync('dist', { recursive: true });\nfs.copyFileSync('slug.js', 'dist/slug.js');\n"


def _package(site: Site) -> None:
    site.write("package.json", PACKAGE)
    site.write("slug.js", SLUG)
    site.write("slug.test.js", TEST)
    site.write("build.js", BUILD)
    site.write(".gitignore", "node_modules/\ndist/\n.env\n")
    site.commit("Begin")


TASKS = [
    Task(
        "npm_fix_test",
        "npm test fails; please fix slug.js.",
        lambda site: [
            run("npm", "test", may_fail=True),
            read("slug.js"),
            edit("slug.js", "replace(' ', '-')", "replaceAll(' ', '-')"),
            run("npm", "test"),
        ],
        before=_package,
        done=lambda site: "replaceAll" in site.text("slug.js"),
    ),
    Task(
        "npm_build",
        "Run the build and tell me what is in dist.",
        lambda site: [run("npm", "run", "build"), run("ls", "-l", "dist")],
        before=_package,
        done=lambda site: "slug" in site.text("dist/slug.js"),
    ),
    Task(
        "npm_version",
        "Raise the version of this package to 1.5.0 and commit that as \"Version 1.5.0\".",
        lambda site: [
            run("npm", "version", "1.5.0", "--no-git-tag-version"),
            run("git", "diff"),
            run("git", "commit", "-am", "Version 1.5.0"),
        ],
        before=_package,
        done=lambda site: '"version": "1.5.0"' in site.git("show", "HEAD:package.json"),
    ),
    Task(
        "node_script",
        "Write a node script that sorts the keys of settings.json, and run it.",
        lambda site: [
            read("settings.json"),
            write(
                "sort.js",
                "const fs = require('fs');\nconst old = JSON.parse(fs.readFileSync('settings.json'));\n"
                "fs.writeFileSync('settings.json', JSON.stringify(Object.fromEntries(Object.entries(old).sort()), null, 2) + '\\n');\n",
            ),
            run("node", "sort.js"),
        ],
        before=lambda site: site.write("settings.json", '{"zoom": 2, "accent": "blue"}\n'),
        done=lambda site: site.text("settings.json").index("accent") < site.text("settings.json").index("zoom"),
    ),
]
