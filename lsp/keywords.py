"""What the words of the language mean, for an editor that shows one: a sentence or two each."""

from __future__ import annotations

DOCS: dict[str, str] = {
    "flow": "A process that waits and acts for as long as it takes. Each run of it is an instance,"
    " under a name of its own.",
    "run": "What an instance does, from its start to its end. A flow has one.",
    "step": "Something done to the world outside. Its answer is kept, so that it is not done again"
    " when the instance goes on.",
    "steps": "Clauses that several steps share; those of a step itself win.",
    "extern": "A step without a body: a supervisor, a process of yours, carries it out.",
    "channel": "Takes the messages of an instance. It holds 16 that nobody has received, unless"
    " `capacity` says otherwise.",
    "view": "Computes from parameters and fields what others may ask of a living instance.",
    "stage": "A named point of `run` at which an instance can be entered again, by a newer version"
    " too. Of the variables it keeps those it names.",
    "migrate": "From a stage of the version before to one of this version. It is pure, and every"
    " path of it ends with `become`.",
    "become": "Ends a migration at a stage of this version. What it does not give is carried over"
    " by its name.",
    "match": "Takes the first case whose pattern fits a value. As an expression its value is that of"
    " the case; every value has to have one.",
    "case": "One way for `match` or `wait` to go on, up to its colon the pattern or what happens.",
    "if": "Goes one of two ways. As an expression it has both, and the value of the one taken.",
    "else": "The other way: of `if`, of a `let` whose pattern does not fit, of a step out of tries.",
    "wait": "Waits until one of its cases happens: a message, an end, a moment, a condition.",
    "after": "Happens when so much time has passed since the wait began.",
    "at": "Happens at a moment.",
    "when": "Happens as soon as a condition on fields holds.",
    "within": "How long one attempt may take: `within 1m`.",
    "tries": "How many attempts there are, and with `for` in what time. `else` gives the answer once"
    " they are spent; without it the instance stops.",
    "forever": "As many attempts as it takes.",
    "backoff": "The pause between attempts; with `to`, doubled each time up to that.",
    "undo": "What takes back what a step did. It is registered with the answer, and runs if the"
    " instance is cancelled or returns an `Err`, the last first.",
    "limit": "How many attempts may be under way at once, or, with `per`, begin in a length of time;"
    " counted over all instances.",
    "on": "Which supervisors carry out a step: those of this queue.",
    "beat": "How often a supervisor has to say that it is still at work.",
    "capacity": "How many messages a channel holds that nobody has received.",
    "answers": "Who sends waits for an answer of this type: `receive()` gives a `Request`.",
    "inside": "Only the flow itself may send to this channel.",
    "keep": "How long an instance and its name stay after its end.",
    "given": "In a test: what a step, or an effect of a body that runs, answers. The last one that"
    " matches counts.",
    "test": "A test. It runs on a clock of its own, which moves only when it is told to.",
    "defer": "Runs when its block is left, but not on a failure or a cancellation: for that there"
    " is `undo`.",
    "pub": "What other packages may use.",
}
