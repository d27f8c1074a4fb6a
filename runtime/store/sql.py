"""Every statement of the store, written once. `dialect` says in which form.

Rows are locked in one order: instances, attempts, channels, messages, waits, members, ledger.
"""

from __future__ import annotations

from functools import cache


def _list(*names: str) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _insert(table: str, *names: str) -> str:
    values = ", ".join(f":{name}" for name in names)
    return f'INSERT INTO "{table}" ({_list(*names)}) VALUES ({values})'


_ENDED = "('done', 'failed')"

# -- instances ---------------------------------------------------------------------------------

# The columns of InstanceRow, in its order.
_INSTANCE = _list(
    *("id", "birth", "flow", "version", "parent", "status", "phase", "since", "stage", "pass"),
    *("state", "at_stage", "args", "result", "stopped_by", "error_code", "cancel", "lease_owner"),
    *("lease_until", "keep_until", "paused", "note", "refuses", "takings", "created"),
    "stopped_state",
)

# What a write needs to know of the row it changes. No state: it may be large.
_HEAD = _list(
    "id",
    "birth",
    "flow",
    "version",
    "parent",
    "status",
    "phase",
    "stage",
    "pass",
    "cancel",
    "lease_owner",
    "lease_until",
    "paused",
    "refuses",
    "stopped_by",
    "error_code",
    "takings",
    "keep_until",
    "wake_at",
    "at_stage_pass",
    "ending",
)
HEAD = f"""
SELECT {_HEAD}, "stopped_state" IS NOT NULL FROM "instances" WHERE "id" = :id FOR UPDATE
"""
INSTANCE = f'SELECT {_INSTANCE} FROM "instances" WHERE "id" = :id'
NEW_INSTANCE = _insert(
    "instances",
    *("id", "birth", "flow", "version", "parent", "status", "phase", "since", "pass", "state"),
    *("at_stage", "args", "created", "wake_at", "lease_owner", "lease_until", "takings"),
) + (' ON CONFLICT ("id") DO NOTHING')
LOCKED_INSTANCE = f"{INSTANCE} FOR UPDATE"
# Nothing but the state is new, and nothing was asked of the instance since its last save.
SAVE_AGAIN = """
UPDATE "instances" SET "state" = :state
WHERE "id" = :id AND "lease_owner" = :me AND "lease_until" > :now
  AND "cancel" IS NULL AND "paused" = 0
"""
DELETE_INSTANCE = 'DELETE FROM "instances" WHERE "id" = :id'

# While an instance is held, `wake_at` is when that is over: then nobody is early.
DUE = """
SELECT "id", "takings" FROM "instances"
WHERE "wake_at" <= :ahead AND ("wake_at" <= :now OR "lease_owner" IS NULL)
ORDER BY "wake_at" LIMIT :limit
"""
NEXT_WAKE = 'SELECT MIN("wake_at") FROM "instances" WHERE "wake_at" > :now'

RENEW = """
UPDATE "instances"
SET "lease_until" = :until, "takings" = 0,
    "wake_at" = CASE WHEN "paused" = 1 THEN NULL ELSE :until END
WHERE "id" = :id AND "lease_owner" = :me AND "lease_until" > :now
"""

# A wait of the instance is over: it is due from now on, or still from an earlier moment.
WAKE = """
UPDATE "instances" SET "wake_at" = CASE WHEN "wake_at" < :now THEN "wake_at" ELSE :now END
WHERE "id" = :id AND "status" = 'waiting' AND "lease_owner" IS NULL AND "paused" = 0
"""
OWNER = 'SELECT "lease_owner" FROM "instances" WHERE "id" = :id'

CHILDREN_TO_CANCEL = f"""
SELECT "id", "lease_owner" FROM "instances"
WHERE "parent" = :id AND "phase" = 'run' AND "status" NOT IN {_ENDED} AND "cancel" IS NULL
ORDER BY "id" FOR UPDATE
"""
CANCEL = """
UPDATE "instances"
SET "cancel" = :cancel,
    "wake_at" = CASE WHEN "lease_owner" IS NOT NULL OR "paused" = 1 THEN "wake_at"
                     WHEN "wake_at" < :now THEN "wake_at" ELSE :now END
WHERE "id" = :id
"""

RESUMED_STATE = """
UPDATE "instances" SET "stopped_state" = "state", "state" = COALESCE("at_stage", "state")
WHERE "id" = :id
"""

COUNTS = 'SELECT "status", COUNT(*) FROM "instances" GROUP BY "status"'
STANDING = f"""
SELECT "flow", "version", "stage", "status", "phase", COUNT(*) FROM "instances"
WHERE "status" NOT IN {_ENDED} GROUP BY "flow", "version", "stage", "status", "phase"
ORDER BY "flow", "version", "stage", "status", "phase"
"""
LIVING_CHILDREN = f"""
SELECT "id", "birth" FROM "instances"
WHERE "parent" = :id AND "status" NOT IN {_ENDED} ORDER BY "created", "id"
"""
CHILDREN = f'SELECT {_INSTANCE} FROM "instances" WHERE "parent" = :id ORDER BY "id"'
ENDED = """
SELECT "status", "result", "since" FROM "instances" WHERE "id" = :id AND "birth" = :birth
"""

EXPIRED = f"""
SELECT i."id", i."birth", i."status" FROM "instances" i
WHERE i."keep_until" <= :now
  AND NOT EXISTS (SELECT 1 FROM "waits" w WHERE w."other" = i."id" AND w."kind" = 'flow'
                  AND COALESCE(w."other_birth", i."birth") = i."birth")
  AND NOT EXISTS (SELECT 1 FROM "members" x WHERE x."child" = i."id" AND x."birth" = i."birth")
  AND NOT EXISTS (SELECT 1 FROM "instances" c
                  WHERE c."parent" = i."id" AND c."status" NOT IN {_ENDED})
"""
EXPIRED_ANY = EXPIRED + ' ORDER BY i."keep_until" LIMIT :limit'
EXPIRED_ONE = EXPIRED + ' AND i."id" = :id'


@cache
def update_instance(columns: tuple[str, ...]) -> str:
    """Only the columns named are written, so that the indexes on the others are left alone."""
    sets = ", ".join(f'"{column}" = :{column}' for column in columns)
    return f'UPDATE "instances" SET {sets} WHERE "id" = :id'


@cache
def list_instances(conditions: tuple[str, ...]) -> str:
    """A page of rows by id. `conditions` are names of `CONDITIONS`."""
    where = " AND ".join(CONDITIONS[name] for name in conditions)
    where = f"WHERE {where} " if where else ""
    return f'SELECT {_INSTANCE} FROM "instances" {where}ORDER BY "id" LIMIT :limit'


CONDITIONS = {
    "status": '"status" = :status',
    "phase": '"phase" = :phase',
    "flow": '"flow" = :flow',
    "version": '"version" = :version',
    "stage": '"stage" = :stage',
    "since": '"since" >= :since',
    "text": """("id" LIKE :text ESCAPE '!' OR "stopped_by" LIKE :text ESCAPE '!')""",
    "after": '"id" > :after',
}

# -- waits and members -------------------------------------------------------------------------

WAITS = """
SELECT "task", "kase", "kind", "channel", "other", "other_birth", "any", "at"
FROM "waits" WHERE "instance" = :id
"""
WAIT_VIEWS = """
SELECT "task", "kase", "kind", "channel", "other", "left", "at"
FROM "waits" WHERE "instance" = :id ORDER BY "task", "kase"
"""
NEW_WAIT = _insert(
    "waits",
    *("instance", "task", "kase", "kind", "channel", "other", "other_birth", "left", "any", "at"),
)
DELETE_WAIT = """
DELETE FROM "waits" WHERE "instance" = :instance AND "task" = :task AND "kase" = :kase
"""
DELETE_WAITS = 'DELETE FROM "waits" WHERE "instance" = :id'
MEMBERS = 'SELECT "task", "kase", "child", "birth" FROM "members" WHERE "instance" = :id'
NEW_MEMBER = _insert("members", "instance", "task", "kase", "child", "birth")
DELETE_MEMBERS_OF = """
DELETE FROM "members" WHERE "instance" = :instance AND "task" = :task AND "kase" = :kase
"""
DELETE_MEMBERS = 'DELETE FROM "members" WHERE "instance" = :id'

# The children's rows are locked: one that ends meanwhile is counted here or takes itself off.
LOCK_MEMBERS = """
SELECT c."status" FROM "members" x
JOIN "instances" c ON c."id" = x."child" AND c."birth" = x."birth"
WHERE x."instance" = :instance AND x."task" = :task AND x."kase" = :kase FOR UPDATE
"""

# When the first wait with a time is over, and whether another one is over already.
WAKING = f"""
SELECT MIN(w."at"), MAX(CASE WHEN
    w."left" = 0
    OR (w."kind" = 'receive' AND EXISTS (
        SELECT 1 FROM "messages" m
        WHERE m."instance" = w."instance" AND m."channel" = w."channel" AND m."taken" IS NULL))
    OR (w."kind" = 'flow' AND NOT EXISTS (
        SELECT 1 FROM "instances" c
        WHERE c."id" = w."other" AND c."birth" = COALESCE(w."other_birth", c."birth")
          AND c."status" NOT IN {_ENDED}))
    OR (w."any" IN (1, 2) AND EXISTS (
        SELECT 1 FROM "members" x
        LEFT JOIN "instances" c ON c."id" = x."child" AND c."birth" = x."birth"
        WHERE x."instance" = w."instance" AND x."task" = w."task" AND x."kase" = w."kase"
          AND (c."id" IS NULL OR c."status" = 'failed' OR (w."any" = 2 AND c."status" = 'done'))))
    OR (w."kind" = 'answer' AND NOT EXISTS (
        SELECT 1 FROM "messages" m JOIN "instances" c ON c."id" = m."instance"
        WHERE m."seq" = CAST(w."other" AS INTEGER) AND m."answered" IS NULL
          AND c."status" NOT IN {_ENDED}))
    THEN 1 ELSE 0 END)
FROM "waits" w WHERE w."instance" = :id
"""

TAKE_OFF = """
UPDATE "waits" SET "left" = "left" - 1
WHERE ("instance", "task", "kase") IN (
    SELECT x."instance", x."task", x."kase" FROM "members" x
    WHERE x."child" = :id AND x."birth" = :birth)
"""
_WAITERS = """
SELECT w."instance" FROM "waits" w
WHERE w."other" = :id AND w."kind" = 'flow' AND COALESCE(w."other_birth", :birth) = :birth
UNION
SELECT w."instance" FROM "members" x
JOIN "waits" w ON w."instance" = x."instance" AND w."task" = x."task" AND w."kase" = x."kase"
WHERE x."child" = :id AND x."birth" = :birth
  AND (w."left" = 0 OR w."any" = 2 OR (w."any" = 1 AND :failed = 1))
"""
WAITERS = f"""
SELECT "id", "lease_owner" FROM "instances" WHERE "id" IN ({_WAITERS}) ORDER BY "id" LIMIT :most
"""
HELD_WAITERS = f"""
SELECT "id", "lease_owner" FROM "instances"
WHERE "id" IN ({_WAITERS}) AND "lease_owner" IS NOT NULL ORDER BY "id"
"""
# Those that are asleep still.
FREE_WAITERS = f"""
SELECT "id", "lease_owner" FROM "instances"
WHERE "id" IN ({_WAITERS}) AND "lease_owner" IS NULL AND "status" = 'waiting' AND "paused" = 0
  AND ("wake_at" IS NULL OR "wake_at" > :now) ORDER BY "id" LIMIT :most
"""
# Whether any of the three above could find something; whether it has waits and members itself.
WATCHED = """
SELECT EXISTS (SELECT 1 FROM "waits" WHERE "other" = :id)
    OR EXISTS (SELECT 1 FROM "members" WHERE "child" = :id)
    OR EXISTS (SELECT 1 FROM "messages"
               WHERE "instance" = :id AND "asks" = 1 AND "answered" IS NULL),
    EXISTS (SELECT 1 FROM "waits" WHERE "instance" = :id),
    EXISTS (SELECT 1 FROM "members" WHERE "instance" = :id)
"""
ASKERS = """
SELECT "id", "lease_owner" FROM "instances" WHERE "id" IN (
SELECT "instance" FROM "waits" WHERE "other" = :seq AND "kind" = 'answer') ORDER BY "id"
"""

# -- attempts ----------------------------------------------------------------------------------

# The columns of Attempt, in its order.
_ATTEMPT = _list(
    *("key", "attempt", "pass", "asked", "owner", "until", "delay", "result", "late", "started"),
    *("ended", "given", "given_at", "message", "step", "settled", "failure", "undo", "otherwise"),
)
# All attempts of one instance: `low` and `high` enclose the keys that start with its name.
_OF_INSTANCE = '"key" >= :low AND "key" < :high AND "instance" = :id'

LAST_ATTEMPT = f"""
SELECT {_ATTEMPT} FROM "attempts" WHERE "key" = :key ORDER BY "attempt" DESC LIMIT 1
"""
ATTEMPT = f'SELECT {_ATTEMPT} FROM "attempts" WHERE "key" = :key AND "attempt" = :attempt'
ATTEMPT_INSTANCE = """
SELECT "instance" FROM "attempts" WHERE "key" = :key AND "attempt" = :attempt
"""
ATTEMPTS = f"""
SELECT {_ATTEMPT} FROM "attempts" WHERE {_OF_INSTANCE} ORDER BY "key", "attempt"
"""
NEW_ATTEMPT = _insert(
    "attempts",
    *("key", "attempt", "instance", "pass", "asked", "owner", "until", "started", "step"),
    *("settled", "queue"),
)
KEPT_ANSWER = _insert(
    "attempts",
    *("key", "attempt", "instance", "pass", "asked", "result", "started", "ended", "given"),
    *("given_at", "message", "step"),
)
KEPT_OUTCOME = KEPT_ANSWER + " ON CONFLICT DO NOTHING"
PUT = """
UPDATE "attempts"
SET "result" = :result, "failure" = :failure, "undo" = :undo, "ended" = :now
WHERE "key" = :key AND "attempt" = :attempt AND "result" IS NULL
"""
PUT_GIVEN = """
UPDATE "attempts"
SET "result" = :result, "failure" = :failure, "undo" = :undo, "ended" = :now,
    "given" = :given, "given_at" = :given_at
WHERE "key" = :key AND "attempt" = :attempt AND "result" IS NULL
"""
GIVEN = """
UPDATE "attempts" SET "given" = :given, "given_at" = :given_at, "otherwise" = :otherwise
WHERE "key" = :key AND "attempt" = :attempt
"""
GIVE_UP = """
UPDATE "attempts"
SET "result" = :word, "until" = :now, "delay" = :delay, "ended" = :now
WHERE "key" = :key AND "attempt" = :attempt AND "result" IS NULL
  AND (:word <> 'timeout' OR "until" <= :now)
"""
LATE = """
UPDATE "attempts" SET "late" = :result WHERE "key" = :key AND "attempt" = :attempt
"""
WORKING = """
SELECT 1 FROM "attempts" WHERE "key" = :key AND "attempt" = :attempt AND "result" IS NULL
"""
DROP_BEFORE = f"""
DELETE FROM "attempts" WHERE {_OF_INSTANCE} AND "pass" < :before AND "result" IS NOT NULL
"""
DELETE_ATTEMPTS = f'DELETE FROM "attempts" WHERE {_OF_INSTANCE}'
MARK = """
UPDATE "attempts" SET "result" = :word WHERE "key" = :key AND "attempt" = :attempt
"""
UNDER_WAY = """
SELECT COUNT(*) FROM "attempts" WHERE "step" = :step AND "result" IS NULL AND "until" > :now
"""
NEW_BEGUN = _insert("begun", "key", "attempt", "step", "at", "until")
BEGUN = 'SELECT COUNT(*) FROM "begun" WHERE "step" = :step AND "at" > :since'
FORGET_BEGUN = 'DELETE FROM "begun" WHERE "until" <= :now'

# The process that held them is known to be dead: nothing of it is still on its way here.
ABANDONED = """
SELECT "instance", "key", "attempt" FROM "attempts"
WHERE "result" IS NULL AND ("queue" IS NULL OR :queued = 1)
"""
ABANDON_ATTEMPTS = """
UPDATE "attempts" SET "result" = 'timeout', "until" = :now, "delay" = 0, "ended" = :now
WHERE "result" IS NULL AND ("queue" IS NULL OR :queued = 1)
"""
ABANDON_LEASES = """
UPDATE "instances"
SET "lease_until" = :now, "wake_at" = CASE WHEN "paused" = 1 THEN NULL ELSE :now END
WHERE "lease_owner" IS NOT NULL AND "status" = 'running'
"""

# -- channels and messages ---------------------------------------------------------------------

# With the first and the last message in it, and whether a wait of the instance is for it.
CHANNEL_OF_NAME = """
SELECT c."channel", c."capacity", c."inside", c."closed", c."private",
    (SELECT MIN(m."seq") FROM "messages" m
     WHERE m."instance" = :id AND m."channel" = c."channel" AND m."taken" IS NULL),
    (SELECT MAX(m."seq") FROM "messages" m
     WHERE m."instance" = :id AND m."channel" = c."channel" AND m."taken" IS NULL),
    EXISTS (SELECT 1 FROM "waits" w
            WHERE w."instance" = :id AND w."kind" = 'receive' AND w."channel" = c."channel")
FROM "channels" c WHERE c."instance" = :id AND c."name" = :name FOR UPDATE
"""
CHANNELS = """
SELECT "channel", "name", "capacity", "inside", "closed", "private" FROM "channels"
WHERE "instance" = :id ORDER BY "channel"
"""
_CHANNEL = ("instance", "channel", "name", "capacity", "inside", "closed", "private")
NEW_CHANNEL = _insert("channels", *_CHANNEL)
PUT_CHANNEL = NEW_CHANNEL + (
    ' ON CONFLICT ("instance", "channel") DO UPDATE SET '
    + ", ".join(f'"{name}" = excluded."{name}"' for name in _CHANNEL[2:])
    + " WHERE "
    + " OR ".join(f'"channels"."{name}" <> excluded."{name}"' for name in _CHANNEL[2:])
)
DELETE_CHANNELS = 'DELETE FROM "channels" WHERE "instance" = :id'

SAME_MESSAGE = """
SELECT "seq", "answer" FROM "messages"
WHERE "instance" = :id AND "channel" = :channel AND "key" = :key
"""
# Whether there are more than so many; no more of them are read.
MORE_UNTAKEN = """
SELECT 1 FROM "messages"
WHERE "instance" = :id AND "channel" = :channel AND "taken" IS NULL LIMIT 1 OFFSET :many
"""
NEW_MESSAGE = _insert("messages", "instance", "channel", "key", "value", "at", "asks")
NEW_MESSAGES = """
SELECT "seq", "channel", "key", "value", "at" FROM "messages"
WHERE "instance" = :id AND "taken" IS NULL ORDER BY "seq"
"""
MESSAGES = """
SELECT "seq", "instance", "channel", "key", "value", "at", "taken", "taken_pass", "answer"
FROM "messages" WHERE "instance" = :id ORDER BY "seq"
"""
TAKE = """
UPDATE "messages" SET "taken" = :now, "taken_pass" = :pass
WHERE "seq" = :seq AND "instance" = :id AND "taken" IS NULL
"""
UNTAKE = """
UPDATE "messages" SET "taken" = NULL, "taken_pass" = NULL
WHERE "instance" = :id AND "taken_pass" >= :pass
"""
REPLY = """
UPDATE "messages" SET "answer" = :answer, "answered" = :now
WHERE "seq" = :seq AND "instance" = :id AND "answered" IS NULL
"""
ANSWER = """
SELECT m."answered", m."answer", i."status" FROM "messages" m
JOIN "instances" i ON i."id" = m."instance" WHERE m."seq" = :seq
"""
ASKING = """
SELECT "seq" FROM "messages" WHERE "instance" = :id AND "asks" = 1 AND "answered" IS NULL
"""
DELETE_MESSAGES = 'DELETE FROM "messages" WHERE "instance" = :id'

# A message that a resume would untake stays, and so does a request that waits for its answer.
FORGET_MESSAGES = """
DELETE FROM "messages" WHERE "seq" IN (
    SELECT m."seq" FROM "messages" m JOIN "instances" i ON i."id" = m."instance"
    WHERE m."taken" <= :before AND m."taken_pass" < i."at_stage_pass"
      AND (m."asks" = 0 OR m."answered" IS NOT NULL))
"""

# -- ledger ------------------------------------------------------------------------------------

NEW_LEDGER = _insert("ledger", "instance", "at", "kind", "detail", "actor")
_LEDGER = 'SELECT "seq", "instance", "at", "kind", "detail", "actor" FROM "ledger"'
LEDGER = f'{_LEDGER} WHERE "seq" > :after ORDER BY "seq" LIMIT :limit'
LEDGER_OF = f"""
{_LEDGER} WHERE "instance" = :id AND "seq" > :after ORDER BY "seq" LIMIT :limit
"""
LAST_CHANGE = 'SELECT "seq" FROM "ledger" ORDER BY "seq" DESC LIMIT 1'
DELETE_LEDGER = 'DELETE FROM "ledger" WHERE "instance" = :id'

# -- versions, daemons, tokens -----------------------------------------------------------------

_VERSION = 'SELECT "hash", "flow", "previous", "bytecode", "debug", "deployed_at" FROM "versions"'
VERSION = f'{_VERSION} WHERE "hash" = :hash'
VERSIONS = f'{_VERSION} ORDER BY "seq"'
VERSIONS_OF = f'{_VERSION} WHERE "flow" = :flow ORDER BY "seq"'
NEWEST = 'SELECT "hash" FROM "versions" WHERE "flow" = :flow ORDER BY "seq" DESC LIMIT 1'
NEW_VERSION = _insert("versions", "hash", "flow", "previous", "bytecode", "debug", "deployed_at")
VERSION_NAMES = 'SELECT "hash", "flow" FROM "versions" ORDER BY "seq"'
DELETE_VERSION = 'DELETE FROM "versions" WHERE "hash" = :hash'
HAS_INSTANCES = """
SELECT 1 FROM "instances" WHERE "flow" = :flow AND "version" = :hash LIMIT 1
"""
# By a state of an older version that a resume left, or by an undo that was registered there.
IS_NAMED = f"""
SELECT 1 FROM "instances" WHERE "flow" = :flow AND "status" NOT IN {_ENDED}
  AND ("state" LIKE :named OR "at_stage" LIKE :named OR "stopped_state" LIKE :named) LIMIT 1
"""
PIN = _insert("pins", "flow", "version") + " ON CONFLICT DO NOTHING"
UNPIN = 'DELETE FROM "pins" WHERE "flow" = :flow AND "version" = :version'
PINS = 'SELECT "flow", "version" FROM "pins"'
PINNED = 'SELECT 1 FROM "pins" WHERE "flow" = :flow AND "version" = :version'

ALIVE = _insert("daemons", "incarnation", "alive_until") + (
    ' ON CONFLICT ("incarnation") DO UPDATE SET "alive_until" = excluded."alive_until"'
)
DAEMONS = 'SELECT "incarnation", "alive_until" FROM "daemons" ORDER BY "incarnation"'
FORGET_DAEMONS = 'DELETE FROM "daemons" WHERE "alive_until" <= :before'

PUT_TOKEN = _insert("tokens", "hash", "role", "name", "created") + (
    ' ON CONFLICT ("name") DO UPDATE SET "hash" = excluded."hash", "role" = excluded."role",'
    ' "created" = excluded."created"'
)
TOKENS = 'SELECT "hash", "role", "name" FROM "tokens" ORDER BY "name"'
DROP_TOKEN = 'DELETE FROM "tokens" WHERE "name" = :name'
