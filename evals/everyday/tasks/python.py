"""Work with Python."""

from __future__ import annotations

from chat import Call
from model import Step, Task
from place import Site
from tasks.steps import edit, fetch, listing, read, run, search, write

CART = "def total(prices, rebate=0):\n    return sum(prices) - rebate / 100\n"
CART_TEST = """\
import unittest

from cart import total


class Total(unittest.TestCase):
    def test_with_rebate(self):
        self.assertEqual(total([60, 40], rebate=10), 90)


if __name__ == "__main__":
    unittest.main()
"""
REPORT = """\
import csv
from collections import defaultdict

sums = defaultdict(float)
with open("expenses.csv") as file:
    for row in csv.DictReader(file):
        sums[row["category"]] += float(row["amount"])
with open("summary.md", "w") as file:
    file.write("| category | amount |\\n|---|---|\\n")
    for category, amount in sorted(sums.items()):
        file.write(f"| {category} | {amount:.2f} |\\n")
"""
SERVER = """\
import http.server
import threading
import urllib.request

from app import Handler

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/health") as answer:
    print(answer.status, answer.read().decode())
"""
APP = """\
import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
        self.wfile.write(b"fine")


if __name__ == "__main__":
    http.server.HTTPServer(("127.0.0.1", 8123), Handler).serve_forever()
"""


def _cart(site: Site) -> None:
    site.write("cart.py", CART)
    site.write("test_cart.py", CART_TEST)
    site.write(".gitignore", "__pycache__/\n.env\n")
    site.commit("Begin")


def _expenses(site: Site) -> None:
    site.write("expenses.csv", "date,category,amount\n2026-11-01,travel,40.50\n2026-11-02,food,12.00\n2026-11-03,travel,9.50\n")


def _module(site: Site) -> None:
    site.write("shop/__init__.py", "")
    site.write("shop/price.py", "def calc(net):\n    return net * 1.19\n")
    site.write("shop/bill.py", "from shop.price import calc\n\n\ndef line(net):\n    return f'{calc(net):.2f}'\n")
    site.write("test_bill.py", "import unittest\nfrom shop.bill import line\n\n\nclass Bill(unittest.TestCase):\n    def test_line(self):\n        self.assertEqual(line(100), '119.00')\n")


TASKS = [
    Task(
        "python_fix_test",
        "python3 -m unittest fails. Please repair cart.py; the rebate is in percent.",
        lambda site: [
            run("python3", "-m", "unittest", may_fail=True),
            read("cart.py"),
            read("test_cart.py"),
            edit("cart.py", "sum(prices) - rebate / 100", "sum(prices) * (100 - rebate) / 100"),
            run("python3", "-m", "unittest"),
        ],
        before=_cart,
        done=lambda site: "(100 - rebate)" in site.text("cart.py"),
    ),
    Task(
        "python_report",
        "Add up the amounts in expenses.csv by category and write the result as a table into summary.md.",
        lambda site: [
            read("expenses.csv"),
            write("report.py", REPORT),
            run("python3", "report.py"),
            read("summary.md"),
        ],
        before=_expenses,
        done=lambda site: "| travel | 50.00 |" in site.text("summary.md"),
    ),
    Task(
        "python_rename",
        "Rename the function calc to gross everywhere and check that the tests still pass.",
        lambda site: [
            search("\\bcalc\\b"),
            edit("shop/price.py", "def calc(net)", "def gross(net)"),
            edit("shop/bill.py", "import calc", "import gross"),
            edit("shop/bill.py", "{calc(net)", "{gross(net)"),
            run("python3", "-B", "-m", "unittest"),
        ],
        before=_module,
        done=lambda site: "calc" not in site.text("shop/bill.py"),
    ),
    Task(
        "python_oneliner",
        "How many different names are in names.txt?",
        lambda site: [run("python3", "-c", "print(len({line.strip() for line in open('names.txt')}))")],
        before=lambda site: site.write("names.txt", "ana\ntom\nana\n"),
    ),
    Task(
        "python_script",
        "Write a script dedup.py that removes repeated lines of a file but keeps their order, and use it on list.txt.",
        lambda site: [
            read("list.txt"),
            write("dedup.py", "import sys\n\nfor path in sys.argv[1:]:\n    lines = list(dict.fromkeys(open(path)))\n    open(path, 'w').writelines(lines)\n"),
            run("python3", "dedup.py", "list.txt"),
            read("list.txt"),
        ],
        before=lambda site: site.write("list.txt", "b\na\nb\nc\na\n"),
        done=lambda site: site.text("list.txt").startswith("b\na\nc\n"),
    ),
    Task(
        "python_json",
        "Turn people.json into people.csv with the columns name and age.",
        lambda site: [
            read("people.json"),
            run(
                "python3",
                "-c",
                "import csv, json\nrows = json.load(open('people.json'))\nout = csv.DictWriter(open('people.csv', 'w'), ['name', 'age'])\nout.writeheader()\nout.writerows(rows)",
            ),
            read("people.csv"),
        ],
        before=lambda site: site.write("people.json", '[{"name": "Ana", "age": 31}, {"name": "Tom", "age": 44}]\n'),
        done=lambda site: "Tom,44" in site.text("people.csv"),
    ),
    Task(
        "python_server",
        "Does the server in app.py answer at /health?",
        lambda site: [
            listing(),
            read("app.py"),
            write("smoke.py", SERVER),
            run("python3", "-B", "smoke.py"),
        ],
        before=lambda site: site.write("app.py", APP),
    ),
    Task(
        "python_serve",
        "Start app.py, tell me what http://127.0.0.1:8123/health answers, and stop it again.",
        lambda site: [
            Step(Call("palyra.process.start", {"argv": ["python3", "-B", "app.py"]})),
            run("sleep", "1"),
            fetch("http://127.0.0.1:8123/health"),
            Step(Call("palyra.process.stop", {"id": "p1"})),
        ],
        before=lambda site: site.write("app.py", APP),
    ),
]
