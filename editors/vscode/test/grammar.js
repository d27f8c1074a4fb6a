// Tokenises lines with the real engine of VS Code and looks at the scopes of words.
//
//     npm test                 the cases below
//     npm test FILE.flow …     also every line of these files: none may have an illegal piece

const fs = require("fs");
const path = require("path");
const assert = require("assert");
const { Registry, INITIAL, parseRawGrammar } = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const GRAMMAR = path.join(__dirname, "..", "syntaxes", "flow.tmLanguage.json");

// A text, a word of it (or [word, which of them]), and the end of its innermost scope.
const CASES = [
  ["flow Approval(claim: Claim) -> Outcome {", "flow", "keyword.declaration.flow.flow"],
  ["flow Approval(claim: Claim) -> Outcome {", "Approval", "entity.name.type.flow"],
  ["flow Approval(claim: Claim) -> Outcome {", "claim", "variable.parameter.flow"],
  ["    let now = flow.now()", "flow", "support.class.flow"],
  ["    let now = flow.now()", ["now", 1], "entity.name.function.member.flow"],
  ["step charge(i: Int) within 1m tries 3", "charge", "entity.name.function.flow"],
  ["step charge(i: Int) within 1m tries 3", "within", "keyword.other.clause.flow"],
  ["step charge(i: Int) within 1m tries 3", "1m", "constant.numeric.duration.flow"],
  ["    wait match {", "wait", "keyword.control.wait.flow"],
  ["    case after 1h30m: return Expired", "after", "keyword.control.wait.flow"],
  ["    case after 1h30m: return Expired", "1h30m", "constant.numeric.duration.flow"],
  ["    stage asking(deadline)", "asking", "entity.name.label.stage.flow"],
  ["let step = 1", "step", "variable.other.flow"],
  ["x.match", "match", "variable.other.flow"],
  ['"a \\(b.c(1)) d"', "b", "variable.other.flow"],
  ['"a \\(b.c(1)) d"', "c", "entity.name.function.member.flow"],
  ['"a \\(b.c(1)) d"', " d", "string.quoted.double.flow"],
  ['"a\\n"', "\\n", "constant.character.escape.flow"],
  ['"a\\q"', "\\q", "invalid.illegal.escape.flow"],
  ['#"no \\(x) here"#', "no \\(x) here", "string.quoted.raw.flow"],
  ["@2026-11-30T08:00Z", "@2026-11-30T08:00Z", "constant.numeric.date.flow"],
  ["12.50 + 1_000", "12.50", "constant.numeric.decimal.flow"],
  ["12.50 + 1_000", "1_000", "constant.numeric.integer.flow"],
  ["/// doc", "/// doc", "comment.line.documentation.flow"],
  ["a // b", "// b", "comment.line.double-slash.flow"],
  ['"// no comment"', "// no comment", "string.quoted.double.flow"],
  ["fn Int.parse(text: String) -> Int?", "parse", "entity.name.function.flow"],
  ["import std.http", "std.http", "entity.name.namespace.flow"],
];

async function load() {
  const wasm = require.resolve("vscode-oniguruma/release/onig.wasm");
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(GRAMMAR, "utf8"), GRAMMAR),
  });
  return registry.loadGrammar("source.flow");
}

function scopeOf(grammar, text, word) {
  const [piece, which] = Array.isArray(word) ? word : [word, 0];
  let at = text.indexOf(piece);
  for (let count = 0; count < which; count++) {
    at = text.indexOf(piece, at + 1);
  }
  const { tokens } = grammar.tokenizeLine(text, INITIAL);
  const token = tokens.find((each) => each.startIndex <= at && at < each.endIndex);
  return token.scopes[token.scopes.length - 1];
}

async function main() {
  const grammar = await load();
  for (const [text, word, scope] of CASES) {
    assert.strictEqual(scopeOf(grammar, text, word), scope, `${JSON.stringify(word)} in ${text}`);
  }
  let lines = 0;
  for (const file of process.argv.slice(2)) {
    let state = INITIAL;
    for (const line of fs.readFileSync(file, "utf8").split(/\r?\n/)) {
      const result = grammar.tokenizeLine(line, state);
      const wrong = result.tokens.find((token) => token.scopes.some((s) => s.includes("invalid")));
      assert.ok(!wrong, `${file}: ${line}`);
      state = result.ruleStack;
      lines += 1;
    }
    const depth = state.depth ?? 1;
    assert.strictEqual(depth, 1, `${file}: a text or bracket is open at the end`);
  }
  console.log(`ok ${CASES.length} cases, ${lines} lines`);
}

main().catch((problem) => {
  console.error(problem.message);
  process.exit(1);
});
