"""`qoqi new NAME`: a package that checks, tests and deploys as it is, to begin from.

The folder is made, or taken if it is empty; in one that has files nothing is changed.
"""

from __future__ import annotations

import re
from pathlib import Path

from qoqi.runtime.cli.ending import REFUSED, USAGE, fail

_NAME = re.compile(r"[a-z][A-Za-z0-9_-]*")

MANIFEST = """\
name = "{name}"
"""

FLOW = """\
//! Asks a person to approve an expense, and pays it.

import std.env
import std.http

/// How long an approval is waited for. Silence is a no.
const patience = 2d

pub struct Expense {{ id: String, cents: Int, why: String = "" }}

pub enum Outcome {{ Paid(receipt: String), Rejected(why: String), Expired }}

pub enum Decision {{ Approve, Reject(why: String) }}

/// Tells the one who decides that there is something to decide.
step ask(expense: Expense) within 30s tries 10 backoff 5s to 5m {{
    let answer = http.post(env.require("ASK_URL"), json: expense, headers: ["Idempotency-Key": flow.key()])
    if answer.status >= 500 {{ flow.retry() }}
    assert(answer.status < 300, "nobody could be asked: \\(answer.status)")
}}

/// Pays it, once: a payment without an answer is a person's question, not paid again.
step pay(expense: Expense) -> Settled<String> within 1m {{
    let answer = http.post(env.require("PAY_URL"), json: expense, headers: ["Idempotency-Key": flow.key()])
    if answer.status == 429 {{ flow.retry(after: 30s) }}
    assert(answer.status < 300, "the payment was refused: \\(answer.status)")
    return Known(answer.text)
}}

/// Pays an expense once it is approved.
flow Approval(expense: Expense) -> Outcome {{
    channel decisions: Decision

    run {{
        ask(expense)
        return wait match {{
            case let decision = decisions.receive(): settle(decision)
            case after patience: Expired
        }}
    }}

    fn settle(decision: Decision) -> Outcome {{
        match decision {{
            case Reject(why): return Rejected(why)
            case Approve:
                match pay(expense) {{
                    case Known(receipt): return Paid(receipt)
                    case Unknown: return Paid(flow.stop("Was \\(expense.id) paid? Under which receipt?"))
                }}
        }}
    }}
}}

const lunch = Expense {{ id: "e1", cents: 1250 }}

given ask(_) => ()

test "an approved expense is paid" {{
    given pay(lunch) => Known("r1")
    let it = Approval.start("e1", lunch)
    it.decisions.send(Approve)
    assert(it.result() == Ok(Paid("r1")))
    assert(steps() == ["ask", "pay"])
}}

test "a rejected one is not" {{
    let it = Approval.start("e2", lunch)
    it.decisions.send(Reject("not today"))
    assert(it.result() == Ok(Rejected("not today")))
    assert(calls(pay).isEmpty())
}}

test "silence is a no" {{
    let it = Approval.start("e3", lunch)
    clock.advance(patience)
    assert(it.result() == Ok(Expired))
}}

test "a payment without an answer is a person's question" {{
    given pay(_) never
    let it = Approval.start("e4", lunch)
    it.decisions.send(Approve)
    clock.advance(1m)
    assert(it.stoppedBy() == Some("Was e1 paid? Under which receipt?"))
    it.answer("r9")
    assert(it.result() == Ok(Paid("r9")))
}}
"""

README = """\
# {name}

    qoqi test               runs the tests of {module}.flow
    qoqi test --crashes     again, with a crash at each write
    qoqi serve .            a daemon with these flows, at http://127.0.0.1:7117
    qoqi start Approval e1 '{{"expense": {{"id": "e1", "cents": 1250}}}}'
    qoqi send e1 decisions '"Approve"'
    qoqi show e1

The daemon's steps read `ASK_URL` and `PAY_URL` from its environment. `flow.lock` belongs into
version control: it says which versions were deployed, and what their instances keep at each stage.
"""

IGNORED = """\
.qoqi/
"""


def run(where: Path) -> None:
    name = where.resolve().name
    if not _NAME.fullmatch(name):
        fail(
            USAGE,
            f"{name} cannot be a package's name: a small letter, then letters, digits, - and _",
        )
    try:
        where.mkdir(parents=True, exist_ok=True)
        if any(where.iterdir()):
            fail(REFUSED, f"{where} is not empty; nothing was written")
        module = module_name(name)
        files = {
            "flow.toml": MANIFEST.format(name=name),
            f"{module}.flow": FLOW.format(),
            "README.md": README.format(name=name, module=module),
            ".gitignore": IGNORED,
        }
        for file, text in files.items():
            (where / file).write_text(text, "utf-8")
    except (FileExistsError, NotADirectoryError):
        fail(REFUSED, f"{where} is a file, or stands below one; nothing was written")
    except OSError as error:
        fail(REFUSED, f"{where} cannot be written: {error.strerror or error}")
    print(f"{where}: {', '.join(files)}")
    print(f"now: cd {where} && qoqi test")


def module_name(name: str) -> str:
    """`expense-report` is a package's name; its module is `expenseReport`."""
    first, *rest = [part for part in name.split("-") if part]
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
