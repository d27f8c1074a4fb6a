"""Random values by type, and the types they are of: shared by the property tests."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from qoqi.vm.bytecode.chunk import Term
from qoqi.vm.types import Types
from qoqi.vm.values import (
    DURATION_LIMIT,
    FIRST_DATE,
    FIRST_TIME,
    LAST_DATE,
    LAST_TIME,
    Date,
    Duration,
    InstanceValue,
    RangeValue,
    SetValue,
    Struct,
    Time,
    Variant,
)
from tests.vm.sample import BOX, DECISION, DEFINITIONS, JSON, LEVEL, LINE, OPTION, RESULT, SETTLED

TYPES = Types(DEFINITIONS)
INFO = TYPES.chunk_types

# Keys of maps, members of sets: data with an order.
KEYS: list[Term] = ["Int", "String", "Date", ("enum", LEVEL), ("Tuple", "Int", "String"), "Decimal"]

TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=3
) | st.sampled_from([Decimal("1E+30"), Decimal("-0.00"), Decimal("12.50"), Decimal("1E-6000")])

SCALARS: dict[str, st.SearchStrategy[object]] = {
    "Bool": st.booleans(),
    "Int": st.integers() | st.sampled_from([10**4095, -(2**63), 2**64]),
    "Decimal": DECIMALS,
    "Float": st.floats(allow_nan=False, allow_infinity=False),
    "String": TEXTS,
    "Bytes": st.binary(max_size=8),
    "Duration": st.integers(-DURATION_LIMIT, DURATION_LIMIT).map(Duration),
    "Time": st.integers(FIRST_TIME, LAST_TIME).map(Time),
    "Date": st.integers(FIRST_DATE, LAST_DATE).map(Date),
}


def _wider(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    keys = st.sampled_from(KEYS)
    plain = inner.filter(lambda term: not _is_nullable(term))
    return st.one_of(
        inner.map(lambda term: ("List", term)),
        keys.map(lambda term: ("Set", term)),
        st.tuples(st.just("Map"), keys, inner),
        st.tuples(st.just("Tuple"), inner, inner),
        keys.map(lambda term: ("Range", term)),
        plain.map(lambda term: ("enum", OPTION, term)),
        st.tuples(inner, inner).map(lambda pair: ("enum", RESULT, *pair)),
        inner.map(lambda term: ("enum", SETTLED, term)),
        inner.map(lambda term: ("struct", BOX, term)),
    )


def _is_nullable(term: Term) -> bool:
    """Whether null is a value: such a type cannot stand in an Option (`T??`)."""
    return term == ("Tuple",) or (
        isinstance(term, tuple) and term[0] == "enum" and term[1] in (OPTION, JSON)
    )


TERMS: st.SearchStrategy[Term] = st.recursive(
    st.sampled_from(
        [
            *SCALARS,
            ("Tuple",),
            ("struct", LINE),
            ("enum", DECISION),
            ("enum", LEVEL),
            ("enum", JSON),
            ("Instance", "main.Ship"),
        ]
    ),
    _wider,
    max_leaves=4,
)


def values(term: Term) -> st.SearchStrategy[object]:
    """Values of the type."""
    if isinstance(term, str):
        return SCALARS[term]
    assert isinstance(term, tuple)
    head, *parts = term
    match head:
        case "List":
            return st.lists(values(parts[0]), max_size=3)
        case "Set":
            return st.lists(values(parts[0]), max_size=3).map(
                lambda items: SetValue(dict.fromkeys(items))
            )
        case "Map":
            return st.dictionaries(values(parts[0]), values(parts[1]), max_size=3)
        case "Tuple":
            return st.tuples(*map(values, parts))
        case "Range":
            return st.builds(RangeValue, values(parts[0]), values(parts[0]), st.booleans())
        case "Instance":
            return st.builds(InstanceValue, st.just(parts[0]), TEXTS, TEXTS)
        case "struct" if parts[0] == LINE:
            note = values(("enum", OPTION, "String"))
            return st.tuples(TEXTS, st.integers(), note).map(
                lambda fields: Struct(INFO[LINE], list(fields))
            )
        case "struct":
            held = values(parts[1])
            return st.tuples(held, st.lists(held, max_size=2)).map(
                lambda fields: Struct(INFO[BOX], list(fields))
            )
        case _:
            return _variants(parts)


def _variants(parts: list[Term]) -> st.SearchStrategy[object]:
    match parts[0]:
        case 0:
            return st.just(TYPES.none()) | values(parts[1]).map(TYPES.some)
        case 1:
            return values(parts[1]).map(TYPES.ok) | values(parts[2]).map(TYPES.err)
        case 2:
            return st.just(TYPES.unknown()) | values(parts[1]).map(TYPES.known)
        case 3:
            return JSONS
        case 5:
            of = INFO[DECISION]
            return st.one_of(
                TEXTS.map(lambda by: Variant(of, 0, (by,))),
                st.tuples(TEXTS, st.lists(TEXTS, max_size=2)).map(lambda it: Variant(of, 1, it)),
                st.just(of.variant("Withdrawn")),
            )
        case _:
            return st.sampled_from(["Low", "High"]).map(INFO[LEVEL].variant)


JSONS: st.SearchStrategy[object] = st.recursive(
    st.one_of(
        st.just(TYPES.json.variant("Null")),
        st.booleans().map(lambda it: TYPES.json.variant("Bool", it)),
        TEXTS.map(lambda it: TYPES.json.variant("String", it)),
        DECIMALS.map(lambda it: TYPES.json.variant("Number", it)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda it: TYPES.json.variant("Array", it)),
        st.dictionaries(TEXTS, inner, max_size=3).map(lambda it: TYPES.json.variant("Object", it)),
    ),
    max_leaves=5,
)

TYPED_VALUES = TERMS.flatmap(lambda term: st.tuples(st.just(term), values(term)))
