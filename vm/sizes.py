"""How large a kept value may be: checked where it is made, so that nothing too large is stored.

A step's answer, a message, an answer to a request, the arguments of a start. What is refused says
its size, the limit, and its largest part, since that is what somebody has to make smaller.
"""

from __future__ import annotations

from qoqi.vm.jsonform import json_text, parse_json


def too_large(what: str, text: str, limit: int) -> str | None:
    """Why the JSON text of a value is not kept; None if it is small enough."""
    if len(text) * 4 <= limit:  # a character takes at most four bytes of UTF-8
        return None
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= limit:
        return None
    said = f"{what} takes {size:,} bytes; at most {limit:,} are kept"
    parts = parse_json(text)
    if isinstance(parts, dict) and parts:
        largest = max(parts, key=lambda name: len(json_text(parts[name])))
        said += f"; its largest part is {largest}"
    return said
