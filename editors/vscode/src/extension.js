// The client: starts `qoqi lsp`, and runs what lenses ask for. All else is the server's.

const fs = require("fs");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const WINDOWS = process.platform === "win32";

let client;

/** The setting; or the environment in a folder that is open; or what the path has. */
function program() {
  const { globalValue, workspaceValue, workspaceFolderValue } = vscode.workspace
    .getConfiguration("flow")
    .inspect("command");
  const chosen = workspaceFolderValue ?? workspaceValue ?? globalValue;
  if (chosen?.length) {
    return chosen;
  }
  const inside = WINDOWS ? [".venv", "Scripts", "qoqi.exe"] : [".venv", "bin", "qoqi"];
  const near = (vscode.workspace.workspaceFolders ?? [])
    .map((folder) => path.join(folder.uri.fsPath, ...inside))
    .find((each) => fs.existsSync(each));
  return [near ?? "qoqi"];
}

function isThere(name) {
  if (name !== path.basename(name)) {
    return fs.existsSync(name);
  }
  const endings = WINDOWS ? ["", ...(process.env.PATHEXT ?? ".EXE").split(";")] : [""];
  return (process.env.PATH ?? "")
    .split(path.delimiter)
    .some((folder) => endings.some((ending) => fs.existsSync(path.join(folder, name + ending))));
}

async function start() {
  const [command, ...before] = program();
  if (!isThere(command)) {
    // Not awaited: activation ends, and the message stays until somebody answers it.
    askForProgram(command);
    return;
  }
  client = new LanguageClient(
    "flow",
    "flow",
    { command, args: [...before, "lsp"] },
    {
      documentSelector: [{ language: "flow" }],
      synchronize: {
        fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.flow,flow.toml,flow.lock}"),
      },
      markdown: { isTrusted: false, supportHtml: false },
    },
  );
  try {
    await client.start();
  } catch (problem) {
    // The client has shown a message, with a way to its log; what is new here goes there.
    client?.outputChannel.appendLine(`\`${command} lsp\` does not start: ${problem}`);
  }
}

async function askForProgram(command) {
  const choice = await vscode.window.showErrorMessage(
    `flow: there is no program \`${command}\`. Install it, or say in the setting flow.command how it is called.`,
    "Open the setting",
    "Try again",
  );
  if (choice === "Open the setting") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "flow.command");
  } else if (choice === "Try again") {
    await restart();
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.needsStop()) {
    await running.stop().catch(() => running.dispose());
  } else {
    await running?.dispose();
  }
}

async function restart() {
  await stop();
  await start();
}

/** Runs `qoqi` in a terminal of its own, which the next run of the same name takes over. */
async function inTerminal(name, args, cwd, scope) {
  const [command, ...before] = program();
  const task = new vscode.Task(
    { type: "flow" },
    scope ?? vscode.TaskScope.Workspace,
    name,
    "flow",
    new vscode.ProcessExecution(command, [...before, ...args], cwd ? { cwd } : {}),
  );
  task.presentationOptions = { clear: true, showReuseMessage: false };
  await vscode.tasks.executeTask(task);
}

/** All tests of a file, or those with `title` in theirs: of what is on the screen. */
async function runTests(file, title) {
  const uri = file ? vscode.Uri.file(file) : vscode.window.activeTextEditor?.document.uri;
  if (uri?.scheme !== "file") {
    vscode.window.showInformationMessage("flow: tests are run from a file on the disk.");
    return;
  }
  const open = vscode.workspace.textDocuments.find((each) => each.uri.fsPath === uri.fsPath);
  if (open?.isDirty) {
    await open.save();
  }
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  const cwd = folder?.uri.fsPath ?? path.dirname(uri.fsPath);
  const chosen = title ? ["-k", title] : [];
  await inTerminal("test", ["test", path.relative(cwd, uri.fsPath), "-v", ...chosen], cwd, folder);
}

async function showInstances(flow) {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const folder = uri && vscode.workspace.getWorkspaceFolder(uri);
  await inTerminal("instances", ["ls", "--flow", flow], folder?.uri.fsPath, folder);
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("flow.restart", restart),
    vscode.commands.registerCommand("flow.runTests", runTests),
    vscode.commands.registerCommand("flow.instances", showInstances),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("flow.command")) {
        await restart();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
