"""Near misses: which known names a user may have meant.

A name is near if a few letters were left out, added, replaced or swapped; the fewer the better.
Names that differ only in case, or that begin with what was written, are near as well. To a single
letter nothing else is near, and for a name of over a hundred it is not looked for. Among a great
many names only those are looked at that begin with the same letter.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 3
LONGEST = 100
MANY = 1_000


def nearest(name: str, candidates: Iterable[str]) -> list[str]:
    """Up to three candidates, the nearest first, ties by the alphabet."""
    if not name or len(name) > LONGEST:
        return []
    allowed = max(1, len(name) // 3) if len(name) > 1 else 0
    lower = name.lower()
    letters = set(lower)
    found: list[tuple[int, str]] = []
    known = set(candidates)
    if len(known) > MANY:
        known = {each for each in known if each[:1].lower() == lower[0]}
    for candidate in known:
        if candidate == name or not candidate:
            continue
        other = candidate.lower()
        if other == lower:
            found.append((0, candidate))
        elif abs(len(other) - len(lower)) <= allowed:
            if len(letters.difference(other)) > allowed:
                continue  # each letter that is not there takes an edit of its own
            distance = edit_distance(lower, other, allowed)
            if distance <= allowed:
                found.append((distance, candidate))
        elif len(name) >= 3 and other.startswith(lower):
            found.append((allowed, candidate))
    return [candidate for _, candidate in sorted(found)[:MOST]]


def edit_distance(a: str, b: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps; `limit + 1` if there are more."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        row = [i]
        for j, right in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before, last = last, row
    return last[-1]
