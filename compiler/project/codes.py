"""The codes of building a package, each with the title of its page."""

from __future__ import annotations

BUILD_CODES: dict[str, str] = {
    "E0230": "A merge conflict in flow.lock",
    "E0231": "A flow.lock that cannot be read",
    "E0232": "A flow.lock of another format",
    "E0233": "A flow.lock that is out of date",
    "E0234": "A build that cannot be written",
    "E0323": "A clause that is not a constant",
    "F0007": "A stage's shape changed without a migration",
    "F0010": "A stage that is gone",
    "F0013": "A channel removed or retyped",
    "W0120": "The step of an undo is gone",
}
