"""The calls about versions: who stands where, pins, rehearsals; and how a stopped instance goes on.

They are calls of `Api` as those in `calls` are. A resume without `go` is dry: what it would do is
tried in memory (`runtime.replay`) and shown. With `go` it is tried too, up to the one thing that
must not be found out later: that the state does not go over into the version.
"""

from __future__ import annotations

from dataclasses import replace

from qoqi.runtime import people, replay
from qoqi.runtime.api import views
from qoqi.runtime.api import wire_versions as wire
from qoqi.runtime.api.calls import Answer, Api, Call, body_of, decode_bytes, refusal
from qoqi.runtime.api.wire import ApiError, ResumeBody
from qoqi.runtime.model import ENDED, InstanceRow, Phase, Standing, Status, VersionRow
from qoqi.runtime.programs import NoVersion, open_version, read_value, turn_limits
from qoqi.runtime.replay import Candidate, Plan, Reader
from qoqi.runtime.store.attempts import places
from qoqi.runtime.store.protocol import Filter, Life
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError, TraceLine
from qoqi.vm.host import WORDS, Attempt, Told
from qoqi.vm.jsonform import type_text, value_text
from qoqi.vm.keys import is_undo, pass_of

PAGE = 500
NAMES_SHOWN = 3


# -- versions and pins ---------------------------------------------------------------------------


async def versions(api: Api, call: Call) -> Answer:
    store = api.daemon.store
    rows = await store.versions(call.query.get("flow"))
    return 200, wire.VersionList(_items(rows, await store.pins(), await store.standing()))


def _items(
    rows: tuple[VersionRow, ...],
    pins: frozenset[tuple[str, str]],
    standing: tuple[Standing, ...],
) -> tuple[wire.VersionItem, ...]:
    newest = {row.flow: row.hash for row in rows}
    return tuple(
        wire.VersionItem(
            row.hash,
            row.flow,
            row.previous,
            row.deployed_at,
            len(row.bytecode),
            newest[row.flow] == row.hash,
            (row.flow, row.hash) in pins,
            tuple(
                wire.StandsItem(one.stage, one.status, one.phase, one.instances)
                for one in standing
                if (one.flow, one.version) == (row.flow, row.hash)
            ),
        )
        for row in rows
    )


async def pin(api: Api, call: Call) -> Answer:
    return await _pin(api, call, True)


async def unpin(api: Api, call: Call) -> Answer:
    return await _pin(api, call, False)


async def _pin(api: Api, call: Call, on: bool) -> Answer:
    flow, hash = call.params["flow"], call.params["hash"]
    row = await api.daemon.store.version(hash)
    if row is None or row.flow != flow:
        raise ApiError("no_version", f"{flow} has no version {hash[:12]} here")
    await api.daemon.store.pin(flow, hash, on)
    await api.daemon.programs.refresh()
    return 200, wire.PinAnswer(flow, hash, on)


async def sweep(api: Api, call: Call) -> Answer:
    daemon = api.daemon
    deleted = await daemon.store.sweep(daemon.clock.now(), daemon.settings.keep)
    gone = await daemon.store.sweep_versions()
    names = tuple(wire.VersionName(flow, hash) for flow, hash in gone)
    return 200, wire.SweepAnswer(deleted, names)


# -- resume --------------------------------------------------------------------------------------


async def resume(api: Api, call: Call) -> Answer:
    body = body_of(call, ResumeBody)
    id, actor = call.params["id"], call.holder.name
    row = await api.row(id)
    version: str | None = None
    if not row.paused and row.status is Status.STOPPED:
        if row.phase is Phase.RUN and row.cancel is not None:
            text = "a cancellation was asked for, and is carried out first"
            raise ApiError("cancel_pending", f"{id}: {text}")
        life, version, answered = await _to_resume(api, row)
        reader = reader_of(api)
        if not body.go:
            found = await replay.plan(life, version, reader)
            return 200, wire.ResumeAnswer("dry", views.instance(row), _plan(found))
        await _check_move(life, version, reader)
        if answered is not None:
            refused = await _answer(api, row, None, actor)
            if refused is not None:
                raise ApiError("not_possible", f"{id}: {refused}")
            return await _resumed(api, id)
    elif not body.go and row.paused:
        return 200, wire.ResumeAnswer("dry", views.instance(row), None)
    elif not row.paused:
        what = "has ended" if row.status in ENDED else f"is {row.status}"
        if row.status in ENDED:
            raise ApiError("ended", f"{id} {what}")
        raise ApiError(
            "not_stopped", f"{id} is not stopped; only a stopped instance can be resumed"
        )
    asked = await api.daemon.store.resume(id, api.daemon.clock.now(), actor, version)
    if asked.outcome != "ok":
        raise refusal(id, asked, "resume")
    api.daemon.tell(id, asked.owner, Told())
    return await _resumed(api, id)


async def _resumed(api: Api, id: str) -> Answer:
    api.daemon.wake()
    return 200, wire.ResumeAnswer("ok", views.instance(await api.row(id)), None)


async def _to_resume(api: Api, row: InstanceRow) -> tuple[Life, str, str | None]:
    """The instance, the version it would go on in, and the key of a question that `()` answers.

    An answer is given to the code that asked, so then the version stays.
    """
    life = await api.daemon.store.life(row.id)
    if life is None:
        raise ApiError("no_instance", f"no instance is named {row.id}")
    program = await api.program(row.version)
    question = people.asked_for(program, row)
    if question is not None:
        key, wanted = question
        if wanted.term != people.UNIT:
            said = type_text(wanted.term, program.types)
            message = f"{row.id} asks a question that wants an answer of type {said}"
            raise ApiError("needs_answer", message)
        given = Attempt(key, 1, pass_of(key), "null", result="null")
        return replace(life, attempts=(*life.attempts, given)), row.version, key
    if row.phase is Phase.FINISH:
        return life, row.version, None
    newest = await api.daemon.programs.newest_for(row.flow, row.version)
    return life, newest or row.version, None


def reader_of(api: Api, candidate: Candidate | None = None) -> Reader:
    daemon = api.daemon
    return Reader(
        daemon.store,
        daemon.programs,
        daemon.clock.now(),
        turn_limits(daemon.settings),
        daemon.settings.keep,
        candidate,
    )


async def _check_move(life: Life, version: str, reader: Reader) -> None:
    """Refuses, before anything is changed, a resume into a version the state cannot go over to."""
    failure = await replay.stays(life, version, reader)
    if failure is None:
        return
    code = "stage_gone" if failure.code == "F0103" else "cannot_move"
    raise ApiError(code, f"{failure.code}: {life.row.id}: {failure.message}")


def _plan(plan: Plan) -> wire.PlanView:
    run, failure = plan.run, plan.run.failure
    return wire.PlanView(
        plan.old,
        run.version,
        plan.row.stage,
        tuple(
            wire.PlanItem(
                one.what,
                one.key,
                views.data(one.before),
                views.data(one.now),
                views.data(one.answer),
                one.version,
                place(one.line_before),
                place(one.line_now),
            )
            for one in plan.lines
        ),
        run.stages,
        run.end,
        run.next,
        None if failure is None else failure.code,
        None if failure is None else failure.message,
        () if failure is None else tuple(place(one) for one in failure.trace),
    )


def place(line: TraceLine) -> str:
    """`order.flow:12`, or the function where no line is known."""
    return f"{line.file}:{line.line}" if line.line else line.function


# -- answers of people ---------------------------------------------------------------------------


async def answer(api: Api, call: Call) -> Answer:
    """To the question an instance stopped with: it goes on."""
    body = body_of(call, wire.AnswerBody)
    id = call.params["id"]
    row = await api.row(id)
    if row.status is not Status.STOPPED:
        raise ApiError("not_stopped", f"{id} is not stopped, so it asks nothing")
    program = await api.program(row.version)
    question = people.asked_for(program, row)
    if question is None:
        raise ApiError("not_possible", f"{id} stopped, but not with a question")
    return await _answered(api, row, question[0], body.value, call.holder.name)


async def _answered(api: Api, row: InstanceRow, key: str, value: object, actor: str) -> Answer:
    program = await api.program(row.version)
    question = people.asked_for(program, row)
    assert question is not None
    try:
        read_value(program, value, question[1].term, "")
    except FlowError as misfit:
        raise ApiError("misfit", misfit.message) from None
    refused = await _answer(api, row, value, actor)
    if refused is not None:
        raise ApiError("not_possible", f"{row.id}: {refused}")
    api.daemon.wake()
    return 200, wire.AttemptAnswer(key, True, views.instance(await api.row(row.id)))


async def _answer(api: Api, row: InstanceRow, value: object, actor: str) -> str | None:
    """Kept and resumed in one transaction; gives why it was refused."""
    daemon = api.daemon
    return await daemon.store.together(
        lambda store: people.answer(
            store, daemon.programs.code, row, value, daemon.clock.now(), actor
        )
    )


async def answer_attempt(api: Api, call: Call) -> Answer:
    """A person's answer under a key: of a question, or of a step that has none (then a resume)."""
    body = body_of(call, wire.AnswerBody)
    key, daemon = call.params["key"], api.daemon
    row = await _owner(api, key)
    if row.status is not Status.STOPPED:
        raise ApiError("not_stopped", f"{row.id} is not stopped; only then a person may answer")
    program = await api.program(row.version)
    question = people.asked_for(program, row)
    if question is not None and question[0] == key:
        return await _answered(api, row, key, body.value, call.holder.name)
    attempt = await daemon.store.attempt(key)
    step = next(
        (one for one in program.chunk.steps if attempt is not None and one.name == attempt.step),
        None,
    )
    if step is None:
        raise ApiError(
            "not_possible", f"{row.id}: nothing was asked under {key} that has no answer"
        )
    if row.phase is Phase.FINISH and not is_undo(key):
        raise ApiError("not_possible", f"{row.id} is ending: only its undos can be answered")
    if attempt is not None and _stands(attempt):
        raise ApiError("not_possible", f"{row.id}: {key} was answered already, and that stands")
    try:
        value = read_value(program, body.value, step.result, "")
    except FlowError as misfit:
        raise ApiError("misfit", misfit.message) from None
    text = value_text(value)
    asked = await daemon.store.post_result(key, text, daemon.clock.now(), call.holder.name)
    if asked.outcome != "ok":
        raise refusal(row.id, asked, "answer")
    return 200, wire.AttemptAnswer(key, False, views.instance(await api.row(row.id)))


def _stands(last: Attempt) -> bool:
    """Whether an answer is kept that nobody may change: one that was given, or that a body gave.

    What an undo answered may be bettered: it is asked again until it is done.
    """
    if last.given is not None:
        return True
    by_a_body = last.owner is not None and not is_undo(last.key)
    return by_a_body and last.result is not None and last.result not in WORDS


async def _owner(api: Api, key: str) -> InstanceRow:
    for id, birth, _ in places(key):
        row = await api.daemon.store.instance(id)
        if row is not None and row.birth == birth:
            return row
    raise ApiError("no_instance", f"no instance has the key {key}")


# -- rehearsals ----------------------------------------------------------------------------------


async def rehearse(api: Api, call: Call) -> Answer:
    """Each candidate against the last stage of every living instance; nothing is written."""
    body = body_of(call, wire.RehearsalBody)
    found = []
    for one in body.versions:
        row = VersionRow(
            one.hash,
            one.flow,
            one.previous,
            decode_bytes(one.bytecode, "bytecode"),
            decode_bytes(one.debug, "debug"),
            0,
        )
        try:
            program = open_version(row)
        except NoVersion as lie:
            raise ApiError("bad_bytecode", f"{one.flow}: {lie}") from None
        candidate = Candidate(one.hash, program, one.previous)
        found.append(await _rehearse(api, one.flow, candidate, body.sample))
    return 200, wire.RehearsalList(tuple(found))


@dataclass(frozen=True, slots=True)
class _Fate:
    """How an instance would fare: alike for all that stand alike."""

    outcome: str
    stage: str | None
    status: str
    code: str | None
    line: str


async def _rehearse(
    api: Api, flow: str, candidate: Candidate, sample: int | None
) -> wire.RehearsalView:
    living, rows = await _living(api, flow, sample)
    fates: dict[_Fate, list[str]] = {}
    messages: dict[_Fate, str] = {}
    reader = reader_of(api, candidate)
    for row in rows:
        life = await api.daemon.store.life(row.id)
        if life is None or life.row.status in ENDED:
            continue
        run = await replay.dry_run(life, candidate.hash, reader)
        failure = run.failure
        line, code = "", None
        if failure is not None:
            code = failure.code
            line = place(failure.trace[0]) if failure.trace else ""
        fate = _Fate(run.end, row.stage, str(row.status), code, line)
        fates.setdefault(fate, []).append(row.id)
        if failure is not None:
            messages.setdefault(fate, failure.message)
    items = tuple(
        wire.RehearsedItem(
            fate.outcome,
            fate.stage,
            fate.status,
            fate.code,
            messages.get(fate),
            fate.line,
            len(names),
            tuple(names[:NAMES_SHOWN]),
        )
        for fate, names in fates.items()
    )
    tried = sum(map(len, fates.values()))
    return wire.RehearsalView(flow, candidate.hash, living, tried, items)


async def _living(api: Api, flow: str, sample: int | None) -> tuple[int, list[InstanceRow]]:
    """How many instances are in their run phase, and those to try, stopped ones first."""
    living = 0
    rows: list[InstanceRow] = []
    for status in (Status.STOPPED, Status.WAITING, Status.RUNNING):
        after: str | None = None
        while True:
            page = await api.daemon.store.instances(
                Filter(status=status, phase=Phase.RUN, flow=flow, after=after, limit=PAGE)
            )
            living += len(page)
            rows += page if sample is None else page[: max(0, sample - len(rows))]
            if len(page) < PAGE:
                break
            after = page[-1].id
    return living, rows
