// The client: starts `qoqi lsp`, and runs tests in a terminal. All else is the server's.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function command(...rest) {
  const [program, ...before] = vscode.workspace.getConfiguration("flow").get("command");
  return { command: program, args: [...before, ...rest] };
}

function makeClient() {
  return new LanguageClient("flow", "flow", command("lsp"), {
    documentSelector: [{ language: "flow" }],
    synchronize: {
      fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.flow,flow.toml,flow.lock}"),
    },
    markdown: { isTrusted: false, supportHtml: false },
  });
}

async function start() {
  client = makeClient();
  try {
    await client.start();
  } catch (problem) {
    const { command: program } = command();
    const choice = await vscode.window.showErrorMessage(
      `flow: \`${program} lsp\` does not start: ${problem.message}`,
      "Settings",
    );
    if (choice === "Settings") {
      vscode.commands.executeCommand("workbench.action.openSettings", "flow.command");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) {
    await running.stop().catch(() => running.dispose());
  }
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

function runTests(path) {
  const file = path ?? vscode.window.activeTextEditor?.document.uri.fsPath;
  if (!file) {
    return;
  }
  const name = "flow tests";
  const terminal =
    vscode.window.terminals.find((each) => each.name === name) ?? vscode.window.createTerminal(name);
  const { command: program, args } = command("test", file);
  terminal.show(true);
  terminal.sendText([program, ...args].map(quoted).join(" "));
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("flow.restart", async () => {
      await stop();
      await start();
    }),
    vscode.commands.registerCommand("flow.runTests", runTests),
    vscode.commands.registerCommand("flow.instances", () => undefined),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("flow.command")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
