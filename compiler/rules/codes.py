"""The codes of the rules, each with the title of its page. Codes are never used again."""

from __future__ import annotations

RULE_CODES: dict[str, str] = {
    "E0218": "a field without a value",
    "E0305": "arms that do not cover every value",
    "F0001": "an effect outside a step",
    "F0002": "a type that is not data",
    "F0003": "a flow operation outside flow code",
    "F0004": "a stage that cannot be entered again",
    "F0005": "a variable the stage does not carry",
    "F0006": "a wait without the cancelled case",
    "F0008": "a migration that does not fit",
    "F0009": "two of one name in a flow",
    "F0011": "an undo of something that is not a step",
    "F0012": "a step called from a step",
    "F0014": "a cancellation nobody would hear",
    "F0015": "a clause that makes no sense",
    "F0016": "a wait that can never end",
    "W0101": "a loop that waits without a stage",
    "W0102": "a request that is not answered",
    "W0103": "an answer thrown away",
    "W0104": "a stage passed while tasks live",
    "W0105": "a length of time that starts again",
    "W0106": "a variable that is not used",
    "W0107": "an import that is not used",
    "W0108": "code that never runs",
    "W0109": "an arm that never matches",
    "W0110": "a variable hidden by another",
}
