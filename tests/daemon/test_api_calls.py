"""The HTTP API: who may do what, what each call answers, and that a refusal changes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from qoqi.runtime.api import tokens, wire
from qoqi.runtime.api.calls import Api
from qoqi.runtime.api.server import ROUTES, Server
from qoqi.runtime.api.tokens import Role
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.store.protocol import StoreBusy
from qoqi.vm.bytecode.chunk import ChannelDef, FieldDef, FlowSlot, TypeDef, VariantDef
from qoqi.vm.bytecode.codec import encode, version_hash
from tests.daemon.workbench import Bench, Watched, approval, version
from tests.vm.assembler import assemble


@dataclass
class Site:
    """A daemon behind its API, and an admin's client."""

    bench: Bench
    daemon: Daemon
    api: Api
    http: httpx.AsyncClient

    async def get(self, path: str, **query: str) -> httpx.Response:
        return await self.http.get(path, params=query)

    async def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        return await self.http.post(path, json=body, headers=headers)

    async def as_role(self, role: Role) -> dict[str, str]:
        return {"Authorization": f"Bearer {await self.api.make_token(f'a-{role}', role)}"}


@pytest.fixture
async def site(bench: Bench) -> AsyncIterator[Site]:
    daemon = await bench.daemon()
    api = Api(daemon)
    token = await api.make_token("admin", Role.ADMIN)
    transport = httpx.ASGITransport(Server(api))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://daemon", headers=headers
    ) as http:
        yield Site(bench, daemon, api, http)


def decision() -> TypeDef:
    by = FieldDef("by", "by", "String")
    return TypeDef(
        "Decision",
        0,
        None,
        (VariantDef("Approved", "Approved", (by,)), VariantDef("Withdrawn", "Withdrawn", ())),
    )


def deciding() -> Any:
    """Waits for a Decision on `decisions` (capacity 1) and returns its argument."""
    return assemble(
        "function run 0 0\nINT 0\nWAIT_CASE 0\nWAIT 1\nPOP\nPOP\nLOAD_FLOW 0\nRETURN\n",
        flow="billing.Deciding",
        types=(decision(),),
        result="String",
        flow_slots=(FlowSlot("claim", "String", True),),
        channels=(
            ChannelDef("decisions", ("enum", 0), 1, False),
            ChannelDef("inner", "Int", 1, True),
        ),
    )


def code(response: httpx.Response) -> tuple[int, str, str]:
    body = response.json()
    assert set(body) == {"code", "message", "detail"}
    assert wire.ERRORS[body["code"]][0] == response.status_code
    return response.status_code, body["code"], body["message"]


# -- tokens ------------------------------------------------------------------------------------


async def test_every_call_but_health_needs_a_token(site: Site) -> None:
    for route in ROUTES:
        answer = await site.http.request(
            route.method, route.path, headers={"Authorization": "Bearer qoqi_wrong"}
        )
        if route.path == "/health":
            assert answer.status_code == 200
        else:
            assert code(answer)[:2] == (401, "bad_token")
            assert answer.headers["www-authenticate"] == "Bearer"
    for header in ("", "Basic x", "Bearer", "Bearer  "):
        answer = await site.http.get("/instances", headers={"Authorization": header})
        assert code(answer)[:2] == (401, "bad_token")
    answer = await site.http.get("/no/such", headers={"Authorization": ""})
    assert code(answer)[1] == "bad_token", "without a token nobody learns which paths there are"


async def test_each_role_may_do_what_it_says(site: Site) -> None:
    may = {
        Role.READ: {"LOOK"},
        Role.SEND: {"SEND"},
        Role.SUPERVISE: set(),
        Role.OPERATE: {"LOOK", "SEND", "OPERATE"},
        Role.ADMIN: {"LOOK", "SEND", "OPERATE", "ADMIN"},
    }
    for role, rights in may.items():
        headers = await site.as_role(role)
        for route in ROUTES:
            if route.right is None:
                continue
            # Of nobody, so that a stream which is allowed is refused and ends.
            path = f"{route.path}?instance=nobody" if route.resumes else route.path
            answer = await site.http.request(route.method, path, headers=headers)
            if answer.status_code == 403:
                assert code(answer)[1] == "not_allowed"
            assert (answer.status_code == 403) == (route.right.name not in rights), (
                role,
                route.path,
            )


async def test_a_token_is_kept_as_its_digest_and_can_be_revoked(site: Site) -> None:
    made = await site.post("/tokens", {"name": "hook", "role": "send"})
    assert made.status_code == 201
    token = made.json()["token"]
    kept = await site.bench.store.tokens()
    assert token not in json.dumps(kept)
    assert (tokens.digest(token), "send", "hook") in kept
    assert code(await site.post("/tokens", {"name": "hook", "role": "send"}))[1] == "token_taken"
    assert code(await site.post("/tokens", {"name": "x", "role": "king"}))[1] == "bad_request"
    listed = (await site.get("/tokens")).json()["tokens"]
    assert {"name": "hook", "role": "send"} in listed
    assert (await site.http.delete("/tokens/hook")).status_code == 200
    headers = {"Authorization": f"Bearer {token}"}
    assert code(await site.http.post("/flows/X/instances", headers=headers))[1] == "bad_token"
    assert code(await site.http.delete("/tokens/hook"))[1] == "no_token"


# -- starting ----------------------------------------------------------------------------------


async def test_start_then_already_then_taken(site: Site) -> None:
    await site.bench.deploy(approval(), site.daemon)
    body = {"name": "expense:4411", "args": {"claim": 21}}
    first = await site.post("/flows/Approval/instances", body)
    assert (first.status_code, first.json()["outcome"]) == (201, "started")
    assert first.json()["instance"]["status"] == "running"  # it is held as it is born
    assert first.json()["instance"]["held_by"] == site.daemon.me
    again = await site.post("/flows/Approval/instances", body)
    assert (again.status_code, again.json()["outcome"]) == (200, "already")
    assert again.json()["instance"]["birth"] == first.json()["instance"]["birth"]
    other = await site.post("/flows/Approval/instances", {**body, "args": {"claim": 22}})
    assert code(other)[:2] == (409, "name_taken")


async def test_a_flow_is_found_by_the_end_of_its_name(site: Site) -> None:
    await site.bench.deploy(deciding(), site.daemon)
    body = {"args": {"claim": "c"}}
    answer = await site.post("/flows/Deciding/instances", body)
    assert answer.json()["instance"]["flow"] == "billing.Deciding"
    assert answer.json()["instance"]["name"].startswith("deciding-")
    status, what, message = code(await site.post("/flows/Refund/instances", body))
    assert (status, what) == (404, "no_flow")
    assert "billing.Deciding" in message


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "claim: is missing"),
        ({"claim": "x"}, 'claim: expected Int, found "x"'),
        ({"claim": 1, "more": 2}, "more: Approval takes claim"),
    ],
)
async def test_arguments_that_do_not_fit_start_nothing(site: Site, args: object, said: str) -> None:
    await site.bench.deploy(approval(), site.daemon)
    answer = await site.post("/flows/Approval/instances", {"name": "e-1", "args": args})
    assert code(answer) == (422, "misfit", said)
    assert await site.bench.store.instance("e-1") is None


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 257, "a\x1b", "a;b"])
async def test_names_are_checked(site: Site, name: str) -> None:
    await site.bench.deploy(approval(), site.daemon)
    answer = await site.post("/flows/Approval/instances", {"name": name, "args": {"claim": 1}})
    assert code(answer)[:2] == (400, "bad_request")


# -- sending -----------------------------------------------------------------------------------


async def started(site: Site, name: str = "d-1") -> str:
    await site.bench.deploy(deciding(), site.daemon)
    answer = await site.post("/flows/Deciding/instances", {"name": name, "args": {"claim": "c"}})
    await site.bench.settle()
    return str(answer.json()["instance"]["birth"])


async def test_a_keyed_message_counts_once_and_says_where_the_instance_is(site: Site) -> None:
    await started(site)
    body = {"value": {"Approved": {"by": "ana"}}}
    first = await site.post("/instances/d-1/channels/decisions", body, **{"Idempotency-Key": "k"})
    assert (first.status_code, first.json()["outcome"]) == (202, "delivered")
    await site.bench.settle()
    again = await site.post("/instances/d-1/channels/decisions", body, **{"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["outcome"]) == (200, "already")
    assert again.json()["instance"]["status"] == "done"
    answer = await site.post("/instances/d-1/channels/decisions", body)
    assert code(answer)[:2] == (410, "ended")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"Approved": {"by": 3}}, "Approved.by: expected String, found 3"),
        ({"Approved": {}}, "Approved.by: missing, expected String"),
        (7, "expected Decision"),
    ],
)
async def test_a_message_that_does_not_fit_is_not_stored(
    site: Site, value: object, said: str
) -> None:
    await started(site)
    answer = await site.post("/instances/d-1/channels/decisions", {"value": value})
    status, what, message = code(answer)
    assert (status, what) == (422, "misfit")
    assert message.startswith(said)
    assert await site.bench.store.messages("d-1") == ()


async def test_channels_that_take_no_messages(site: Site) -> None:
    await started(site)
    body = {"value": 1}
    for channel in ("inner", "no", "1"):
        answer = await site.post(f"/instances/d-1/channels/{channel}", body)
        assert code(answer)[:2] == (404, "no_channel")
    assert code(await site.post("/instances/nobody/channels/decisions", body))[1] == "no_instance"
    by_number = {"value": "Withdrawn"}
    assert (await site.post("/instances/d-1/channels/0", by_number)).status_code == 202


async def test_a_full_channel_and_an_older_birth(site: Site) -> None:
    birth = await started(site)
    await site.post("/instances/d-1/pause", {})
    body = {"value": "Withdrawn"}
    assert (await site.post("/instances/d-1/channels/decisions", body)).status_code == 202
    full = await site.post("/instances/d-1/channels/decisions", body)
    assert code(full)[:2] == (409, "full")
    older = {**body, "birth": "aaaaaaaa"}
    assert code(await site.post("/instances/d-1/channels/decisions", older))[1] == "ended"
    assert birth != "aaaaaaaa"


@pytest.mark.parametrize("key", ["", "x" * 257, "a\tb"])
async def test_keys_have_a_length(site: Site, key: str) -> None:
    await started(site)
    answer = await site.post(
        "/instances/d-1/channels/decisions", {"value": "Withdrawn"}, **{"Idempotency-Key": key}
    )
    assert code(answer)[:2] == (400, "bad_request")
    assert await site.bench.store.messages("d-1") == ()


async def test_names_with_slashes_travel_encoded(site: Site) -> None:
    name = "a/b:c/cancel"
    await started(site, name)
    path = f"/instances/{quote(name, safe='')}"
    assert (await site.get(path)).json()["instance"]["name"] == name
    assert (await site.post(f"{path}/cancel", {"reason": "no"})).status_code == 200
    await site.bench.settle()
    assert (await site.get(path)).json()["instance"]["status"] == "failed"


# -- acting ------------------------------------------------------------------------------------


async def test_cancel_pause_resume_end(site: Site) -> None:
    await started(site)
    assert code(await site.post("/instances/d-1/resume", {"go": True}))[1] == "not_stopped"
    assert code(await site.post("/instances/d-1/end", {"reason": "x"}))[1] == "not_stopped"
    assert code(await site.post("/instances/d-1/resume", {}))[1] == "not_stopped"
    paused = await site.post("/instances/d-1/pause", {})
    assert paused.json()["instance"]["paused"] is True
    resumed = await site.post("/instances/d-1/resume", {"go": True})
    assert resumed.json()["instance"]["paused"] is False
    assert code(await site.post("/instances/d-1/cancel", {"reason": ""}))[1] == "bad_request"
    assert (await site.post("/instances/d-1/cancel", {"reason": "no"})).status_code == 200
    await site.bench.settle()
    assert code(await site.post("/instances/d-1/cancel", {"reason": "no"}))[1] == "ended"
    assert code(await site.post("/instances/d-2/cancel", {"reason": "no"}))[1] == "no_instance"
    life = (await site.get("/instances/d-1")).json()
    kinds = [row["kind"] for row in life["ledger"]]
    assert kinds == ["started", "paused", "pause over", "cancel", "cancelled", "failed"]
    assert [row["actor"] for row in life["ledger"]][1:4] == ["admin"] * 3


async def test_a_stopped_instance_is_resumed_in_the_newest_version(site: Site) -> None:
    failing = assemble(
        "function run 0 0\nFAIL 0\nUNIT\nRETURN\n", flow="Job", constants=("no money",)
    )
    fixed = assemble("function run 0 0\nINT 7\nRETURN\n", flow="Job", result="Int")
    await site.bench.deploy(failing, site.daemon)
    await site.post("/flows/Job/instances", {"name": "j-1"})
    await site.bench.settle()
    stopped = (await site.get("/instances/j-1")).json()
    assert stopped["instance"]["status"] == "stopped"
    assert stopped["instance"]["stopped_by"] == "no money"
    assert stopped["instance"]["error_code"] == "R0001"
    assert stopped["calls"][0]["function"] == "run"
    await site.bench.deploy(fixed, site.daemon)
    assert (await site.post("/instances/j-1/resume", {"go": True})).status_code == 200
    await site.bench.settle()
    assert (await site.get("/instances/j-1")).json()["result"] == 7


async def test_a_pending_cancellation_comes_before_a_resume(site: Site) -> None:
    failing = assemble(
        "function run 0 0\nFAIL 0\nUNIT\nRETURN\n", flow="Job", constants=("no money",)
    )
    await site.bench.deploy(failing, site.daemon)
    await site.post("/flows/Job/instances", {"name": "j-1"})
    await site.bench.settle()
    await site.daemon.kill()
    assert (await site.post("/instances/j-1/cancel", {"reason": "no"})).status_code == 200
    answer = await site.post("/instances/j-1/resume", {"go": True})
    assert code(answer)[:2] == (409, "cancel_pending")
    assert (await site.bench.row("j-1")).status == "stopped"


async def test_a_question_is_answered_by_a_resume_only_if_it_wants_nothing(site: Site) -> None:
    for name, wanted in (("Unit", ("Tuple",)), ("Number", "Int")):
        chunk = assemble(
            "function run 0 0\nCONST 0\nTERM 0\nOPERATION 0\nRETURN\n",
            flow=name,
            result=wanted,
            terms=(wanted,),
            constants=("is it paid?",),
            operations=(("flow.stop", 2),),
        )
        await site.bench.deploy(chunk, site.daemon)
        await site.post(f"/flows/{name}/instances", {"name": name})
        await site.bench.settle()
        stopped = (await site.get(f"/instances/{name}")).json()["instance"]
        assert (stopped["status"], stopped["stopped_by"]) == ("stopped", "is it paid?")
    assert (await site.post("/instances/Unit/resume", {"go": True})).status_code == 200
    await site.bench.settle()
    assert (await site.bench.row("Unit")).status == "done"
    before = await site.bench.row("Number")
    status, what, message = code(await site.post("/instances/Number/resume", {"go": True}))
    assert (status, what) == (409, "needs_answer")
    assert "an answer of type Int" in message
    assert await site.bench.row("Number") == before


async def test_a_resume_at_a_stage_that_is_gone_is_refused_and_changes_nothing(site: Site) -> None:
    from qoqi.vm.bytecode.chunk import StageDef

    failing = assemble(
        "function run 0 0\nSTAGE 0\nFAIL 0\nUNIT\nRETURN\n",
        flow="Job",
        constants=("no money",),
        stages=(StageDef("paying", 1, ()),),
    )
    fixed = assemble(
        "function run 0 0\nSTAGE 0\nINT 7\nRETURN\n",
        flow="Job",
        result="Int",
        stages=(StageDef("billing", 1, ()),),
    )
    await site.bench.deploy(failing, site.daemon)
    await site.post("/flows/Job/instances", {"name": "j-1"})
    await site.bench.settle()
    before = await site.bench.row("j-1")
    await site.bench.deploy(fixed, site.daemon)
    status, what, message = code(await site.post("/instances/j-1/resume", {"go": True}))
    assert (status, what) == (409, "stage_gone")
    assert "paying" in message and "billing" in message
    assert await site.bench.row("j-1") == before


# -- looking -----------------------------------------------------------------------------------


async def test_lists_are_filtered_and_paged(site: Site) -> None:
    await site.bench.deploy(approval(), site.daemon)
    for number in range(5):
        body = {"name": f"e-{number}", "args": {"claim": number}}
        await site.post("/flows/Approval/instances", body)
    await site.bench.settle()
    await site.post("/instances/e-1/cancel", {"reason": "no"})
    await site.bench.settle()
    page = (await site.get("/instances", limit="2")).json()
    assert [one["name"] for one in page["instances"]] == ["e-0", "e-1"]
    rest = (await site.get("/instances", limit="9", after=page["next"])).json()
    assert [one["name"] for one in rest["instances"]] == ["e-2", "e-3", "e-4"]
    assert rest["next"] is None
    failed = (await site.get("/instances", status="failed")).json()["instances"]
    assert [one["name"] for one in failed] == ["e-1"]
    found = (await site.get("/instances", text="-3")).json()["instances"]
    assert [one["name"] for one in found] == ["e-3"]
    await site.bench.deploy(approval(flow="shop.Order"), site.daemon)
    await site.post("/flows/Order/instances", {"name": "o-1", "args": {"claim": 1}})
    for name in ("Order", "shop.Order"):
        found = (await site.get("/instances", flow=name)).json()["instances"]
        assert [one["name"] for one in found] == ["o-1"], "named as where it is started"
    assert (await site.get("/instances", flow="rder")).json()["instances"] == []
    assert code(await site.get("/instances", status="asleep"))[1] == "bad_request"
    assert code(await site.get("/instances", limit="x"))[1] == "bad_request"
    assert code(await site.get("/instances", colour="red"))[1] == "bad_request"


async def test_a_life_shows_variables_waits_attempts_and_messages(site: Site) -> None:
    await site.bench.deploy(approval(), site.daemon)
    await site.post("/flows/Approval/instances", {"name": "e-1", "args": {"claim": 21}})
    await site.bench.settle()
    await site.post("/instances/e-1/pause", {})
    await site.post("/instances/e-1/channels/decisions", {"value": 5})
    life = (await site.get("/instances/e-1")).json()
    assert life["variables"] == [
        {"name": "asked", "kind": "variable", "value": 42},
        {"name": "claim", "kind": "parameter", "value": 21},
    ]
    assert [(one["kind"], one["channel"]) for one in life["waits"]] == [("receive", "decisions")]
    assert [(one["channel"], one["value"]) for one in life["messages"]] == [("decisions", 5)]
    assert life["args"] == {"claim": 21}
    ledger = (await site.get("/instances/e-1/ledger", limit="2")).json()
    assert [row["kind"] for row in ledger["ledger"]] == ["started", "left"]
    more = (await site.get("/instances/e-1/ledger", after=str(ledger["next"]))).json()
    assert "stage" in [row["kind"] for row in more["ledger"]]


async def test_a_flow_shows_its_parts_and_who_stands_where(site: Site) -> None:
    hash = await site.bench.deploy(approval(), site.daemon)
    await site.post("/flows/Approval/instances", {"name": "e-1", "args": {"claim": 21}})
    await site.bench.settle()
    flow = (await site.get("/flows/Approval")).json()
    assert flow["params"] == [{"name": "claim", "type": "Int"}]
    assert flow["stages"] == [{"name": "asking", "variables": [{"name": "asked", "type": "Int"}]}]
    assert flow["steps"][0]["name"] == "ask"
    assert flow["standing"] == [{"version": hash, "stage": "asking", "instances": 1}]
    assert [one["hash"] for one in flow["versions"]] == [hash]
    assert flow["newest"] == hash


async def test_metrics_count_by_status(site: Site) -> None:
    await site.bench.deploy(approval(), site.daemon)
    for number in range(3):
        body = {"name": f"e-{number}", "args": {"claim": number}}
        await site.post("/flows/Approval/instances", body)
    await site.bench.settle()
    await site.post("/instances/e-0/cancel", {"reason": "no"})
    await site.bench.settle()
    text = (await site.get("/metrics")).text
    assert 'qoqi_instances{status="waiting"} 2\n' in text
    assert 'qoqi_instances{status="failed"} 1\n' in text
    assert "# TYPE qoqi_instances gauge\n" in text
    assert "qoqi_instances_held 0\n" in text


# -- versions ----------------------------------------------------------------------------------


def body_of(chunk: Any, previous: str | None = None, **changes: object) -> tuple[str, Any]:
    row = version(chunk, previous)
    text = base64.b64encode(row.bytecode).decode()
    return row.hash, {
        "flow": row.flow,
        "bytecode": text,
        "debug": "",
        "previous": previous,
        **changes,
    }


async def test_deploying_is_new_then_known_then_behind(site: Site) -> None:
    first, body = body_of(approval())
    assert (await site.http.put(f"/versions/{first}", json=body)).status_code == 201
    assert (await site.http.put(f"/versions/{first}", json=body)).json()["outcome"] == "known"
    second, body = body_of(approval(keep=5), first)
    assert (await site.http.put(f"/versions/{second}", json=body)).json()["outcome"] == "new"
    third, body = body_of(approval(keep=6), first)
    answer = await site.http.put(f"/versions/{third}", json=body)
    assert code(answer)[:2] == (409, "behind")
    assert await site.bench.store.newest("Approval") == second


async def test_bytecode_that_lies_is_refused(site: Site) -> None:
    hash, body = body_of(approval())
    data = base64.b64decode(body["bytecode"])

    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    jumping = assemble("function run 0 0\nJUMP 99\nRETURN\n", flow="Approval")
    lying = encode(jumping)
    for name, content, flow, message in (
        (hash, text(data[:-1]), "Approval", "not that of version"),
        (version_hash(data[:-1]), text(data[:-1]), "Approval", "cannot be loaded"),
        (version_hash(lying), text(lying), "Approval", "cannot be loaded"),
        (hash, text(data), "Other", "is of flow Approval, not Other"),
        (version_hash(b""), "", "Approval", "cannot be loaded"),
    ):
        answer = await site.http.put(
            f"/versions/{name}", json={**body, "bytecode": content, "flow": flow}
        )
        status, what, said = code(answer)
        assert (status, what) == (422, "bad_bytecode")
        assert message in said
    broken = await site.http.put(f"/versions/{hash}", json={**body, "bytecode": "%%"})
    assert code(broken)[1] == "bad_request"
    assert await site.bench.store.versions(None) == ()


# -- what comes in -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "what", "said"),
    [
        (b"{", "bad_json", "line 1, column 2"),
        (b"\xff", "bad_json", "UTF-8"),
        (b"[]", "bad_request", "expected an object, found a list"),
        (b'{"name": 3}', "bad_request", "name: expected a string, found a number"),
        (b'{"nmae": "x"}', "bad_request", "nmae: no such field here"),
        (b'{"args": []}', "bad_request", "args: expected an object, found a list"),
        (b"[" * 100_000, "bad_json", "nested"),
    ],
)
async def test_bodies_that_are_none(site: Site, content: bytes, what: str, said: str) -> None:
    await site.bench.deploy(approval(), site.daemon)
    answer = await site.http.post("/flows/Approval/instances", content=content)
    assert code(answer)[1] == what
    assert said in code(answer)[2]


async def test_a_body_is_bounded(site: Site) -> None:
    answer = await site.http.post("/flows/Approval/instances", content=b" " * (wire.BODY_LIMIT + 1))
    assert code(answer)[:2] == (413, "too_large")


async def test_a_value_over_the_limit_is_refused_with_its_size(site: Site) -> None:
    site.daemon.settings = replace(site.daemon.settings, value_limit=40)
    await site.bench.deploy(deciding(), site.daemon)
    long = {"name": "d-1", "args": {"claim": "x" * 40}}
    assert code(await site.post("/flows/Deciding/instances", long))[:2] == (413, "too_large")
    assert await site.bench.store.instance("d-1") is None


async def test_unknown_paths_and_methods(site: Site) -> None:
    assert code(await site.get("/nothing"))[:2] == (404, "not_found")
    answer = await site.http.delete("/instances")
    assert code(answer)[:2] == (405, "not_a_call")
    assert answer.headers["allow"] == "GET"
    assert code(await site.get("/instances/%ff"))[:2] == (400, "bad_request")


async def test_a_busy_database_is_503_and_says_so(site: Site) -> None:
    class Busy(Watched):
        async def instances(self, filter: Any) -> Any:
            raise StoreBusy("the disk is full")

    site.daemon.store = Busy(site.bench.store._store)
    answer = await site.get("/instances")
    assert code(answer)[:2] == (503, "database_busy")
    assert answer.headers["retry-after"] == "1"


async def test_a_mistake_of_the_daemon_is_one_500(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Watched):
        async def instances(self, filter: Any) -> Any:
            raise RuntimeError("secret detail")

    site.daemon.store = Broken(site.bench.store._store)
    answer = await site.get("/instances")
    assert code(answer)[:2] == (500, "internal")
    assert "secret" not in answer.text
    assert "secret detail" in caplog.text
    site.daemon.store = site.bench.store
    assert (await site.get("/instances")).status_code == 200


# -- the document ------------------------------------------------------------------------------


async def test_the_document_names_every_call_and_only_those(site: Site) -> None:
    document = (await site.get("/openapi.json")).json()
    named = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert named == {(route.method, route.path) for route in ROUTES}
    schemas = document["components"]["schemas"]
    assert schemas["StartBody"]["required"] == []
    assert schemas["SendBody"]["required"] == ["value"]
    assert "anyOf" in schemas["SendBody"]["properties"]["birth"]
    used = set(_references(document))
    assert used == set(schemas)


def _references(part: object) -> list[str]:
    if isinstance(part, dict):
        own = [str(part["$ref"]).rpartition("/")[2]] if "$ref" in part else []
        return own + [name for value in part.values() for name in _references(value)]
    if isinstance(part, list):
        return [name for value in part for name in _references(value)]
    return []


async def test_every_answer_is_what_the_document_says(site: Site) -> None:
    """The records that are written are those the routes name: read back, nothing is left over."""
    await site.bench.deploy(approval(), site.daemon)
    await site.post("/flows/Approval/instances", {"name": "e-1", "args": {"claim": 21}})
    await site.bench.settle()
    for route in ROUTES:
        if route.method != "GET" or wire.EventStream in route.answers.values():
            continue
        path = route.path.format(flow="Approval", id="e-1", view="twice")
        answer = await site.get(path)
        record = route.answers[answer.status_code]
        if record is str:
            assert answer.headers["content-type"].startswith("text/plain")
            continue
        assert wire.write(wire.read(record, answer.json())) == answer.json()
