// Drives the extension in a real VS Code, served to a Chromium without a screen.
//
//     npm run package && npm run test:browser [-- --pictures FOLDER]
//
// Opens the examples as a package; sees colours, hints, lenses and a diagnostic; applies its fix,
// completes, hovers, renames, formats, runs tests; then starts again without `qoqi`. Each part
// prints `ok NAME`; the first that fails leaves a picture, and the exit is 1. Needed beside
// `npm install`, each found by its name or through a variable:
//
//     CODE_SERVER   code-server, a VS Code for browsers (a .js file is run by this node)
//     CHROMIUM      chromium
//     QOQI          qoqi, with what stands before it
//
// Without one of them the exit is 77, and the last line says which.
//
// What a person would see is asked of the page; what became of a text, of the file once saved.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const EXTENSION = path.dirname(HERE);
const EXAMPLES = path.join(EXTENSION, "..", "..", "examples");
const PATIENCE = 20_000;

const SETTINGS = {
  "chat.commandCenter.enabled": false,
  "editor.fontSize": 13,
  "editor.minimap.enabled": false,
  "extensions.autoUpdate": false,
  "git.enabled": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  // As DOM and not as a canvas: what the terminal shows can be read.
  "terminal.integrated.gpuAcceleration": "off",
  "update.mode": "none",
  "window.commandCenter": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

class Missing extends Error {}

/** The program of a variable, or the first of these on the path, as words. */
function found(variable, ...names) {
  const words = (process.env[variable] ?? "").split(" ").filter(Boolean);
  const folders = process.env.PATH.split(path.delimiter);
  const file = names
    .flatMap((name) => folders.map((folder) => path.join(folder, name)))
    .find((each) => fs.existsSync(each));
  if (!words.length && !file) {
    throw new Missing(`no ${names[0]}: neither on the path nor in ${variable}`);
  }
  const command = words.length ? words : [file];
  return command[0].endsWith(".js") ? [process.execPath, ...command] : command;
}

function packaged() {
  const name = fs.readdirSync(EXTENSION).find((each) => each.endsWith(".vsix"));
  if (!name) {
    throw new Missing("no .vsix: run `npm run package` first");
  }
  return path.join(EXTENSION, name);
}

async function playwright() {
  try {
    return await import("playwright-core");
  } catch {
    throw new Missing("no playwright-core: run `npm install` first");
  }
}

/** A home, a package and a code-server with the extension, all in one folder that goes at the end. */
class Studio {
  constructor(server, qoqi) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "flow-vscode-"));
    this.shop = path.join(this.folder, "shop");
    this.server = server;
    this.options = ["--user-data-dir", this.in("data"), "--extensions-dir", this.in("extensions")];
    for (const each of ["bin", "home", "shop", "data/User"]) {
      fs.mkdirSync(this.in(each), { recursive: true });
    }
    // VS Code asks a login shell what the path is, so the home has to say it.
    const profile = `export PATH='${this.in("bin")}':"$PATH"\nexport PYTHONPATH='${process.env.PYTHONPATH ?? ""}'\n`;
    for (const each of [".profile", ".bash_profile", ".bashrc", ".zshenv"]) {
      fs.writeFileSync(this.in("home", each), profile);
    }
    fs.writeFileSync(this.in("bin", "qoqi"), `#!/bin/sh\nexec ${qoqi.map(quoted).join(" ")} "$@"\n`, {
      mode: 0o755,
    });
    fs.writeFileSync(this.in("shop", "flow.toml"), 'name = "shop"\n');
    for (const each of ["approval.flow", "order.flow", "payments.flow"]) {
      fs.copyFileSync(path.join(EXAMPLES, each), this.in("shop", each));
    }
    this.settings({});
  }

  in(...names) {
    return path.join(this.folder, ...names);
  }

  settings(more) {
    const text = JSON.stringify({ ...SETTINGS, ...more }, null, 2);
    fs.writeFileSync(this.in("data", "User", "settings.json"), text);
  }

  environment() {
    const kept = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|XDG_)/.test(name));
    return { ...Object.fromEntries(kept), HOME: this.in("home"), SHELL: "/bin/bash" };
  }

  install(extension) {
    const [program, ...before] = this.server;
    const args = [...before, ...this.options, "--install-extension", extension];
    const done = spawnSync(program, args, { env: this.environment(), encoding: "utf8" });
    if (done.status !== 0 || !/successfully installed/.test(done.stdout)) {
      throw new Error(`code-server does not install the extension:\n${done.stdout}${done.stderr}`);
    }
  }

  /** Starts code-server on a free port; gives its address. */
  start() {
    const [program, ...before] = this.server;
    const args = [...before, ...this.options, "--auth", "none", "--bind-addr", "127.0.0.1:0"];
    args.push("--disable-telemetry", "--disable-update-check");
    this.running = spawn(program, args, {
      env: this.environment(),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new Promise((resolve, reject) => {
      let said = "";
      const listen = (piece) => {
        said += piece;
        const address = /listening on (http:\S+?)\/?\s/.exec(said);
        if (address) {
          resolve(address[1]);
        }
      };
      this.running.stdout.on("data", listen);
      this.running.stderr.on("data", listen);
      this.running.once("error", reject);
      this.running.once("exit", () => reject(new Error(`code-server ended:\n${said}`)));
    });
  }

  async end() {
    if (this.running?.exitCode === null) {
      const gone = new Promise((resolve) => this.running.once("exit", resolve));
      process.kill(-this.running.pid);
      await gone;
    }
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

function quoted(word) {
  return `'${word.replace(/'/g, `'\\''`)}'`;
}

async function until(what, check) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const result = await check();
    if (result) {
      return result;
    }
    if (Date.now() > end) {
      throw new Error(`not seen: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A window of VS Code: what a person does with keys, and sees. */
class Window {
  constructor(page, studio, pictures) {
    this.page = page;
    this.keyboard = page.keyboard;
    this.studio = studio;
    this.pictures = pictures;
  }

  async open(address) {
    await this.page.goto(`${address}/?folder=${this.studio.shop}`);
    await this.page.waitForSelector(".explorer-folders-view .monaco-list-row");
  }

  type(text) {
    return this.keyboard.type(text, { delay: 25 });
  }

  /**
   * Types a line and ends it. A list that is open for a word before, and waits for its items, would
   * take the end of the line for a choice.
   */
  async line(text) {
    await this.type(text);
    await this.page.waitForSelector(".suggest-widget.visible", { state: "hidden" });
    await this.press("Enter");
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.keyboard.press(key)), Promise.resolve());
  }

  async command(title) {
    await this.press("F1");
    await this.page.waitForSelector(".quick-input-widget:visible");
    await this.type(title);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  }

  async file(name) {
    await this.press("Control+p");
    await this.page.waitForSelector(".quick-input-widget:visible");
    await this.type(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor();
    await this.press("Enter");
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
  }

  /** Puts the cursor before the nth occurrence of a text in a file that is on the disk as shown. */
  async to(file, text, nth = 0) {
    const whole = this.saved(file);
    let at = -1;
    for (let count = 0; count <= nth; count++) {
      at = whole.indexOf(text, at + 1);
    }
    if (at < 0) {
      throw new Error(`no ${text} in ${file}`);
    }
    const lines = whole.slice(0, at).split("\n");
    await this.press("Control+g");
    await this.page.waitForSelector(".quick-input-widget:visible");
    await this.type(`${lines.length}:${lines.at(-1).length + 1}`);
    await this.sees("where it goes", ".quick-input-list", `line ${lines.length} and character`);
    await this.press("Enter");
    await this.page.waitForSelector(".quick-input-widget", { state: "hidden" });
  }

  saved(file) {
    return fs.readFileSync(path.join(this.studio.shop, file), "utf8");
  }

  async becomes(file, what, check) {
    await this.press("Control+s");
    // A file that is being written is empty for a moment.
    await until(what, () => this.saved(file) && check(this.saved(file)));
  }

  /** The lines of the editor that are on the screen, with their hints, without any space. */
  async text() {
    const lines = await this.page.locator(".editor-instance .view-line").allInnerTexts();
    return lines.map((line) => line.replace(/[\s\u200b-\u200d]/g, "")).join("\n");
  }

  sees(what, selector, text) {
    return until(what, async () => {
      const all = await this.page.locator(`${selector}:visible`).allInnerTexts();
      return all.some((each) => each.replace(/\s/g, " ").includes(text));
    });
  }

  /** The colour of a word on the screen. */
  colour(word) {
    return this.page.evaluate((wanted) => {
      const spans = [...document.querySelectorAll(".editor-instance .view-line span span")];
      const span = spans.find((each) => each.textContent.trim() === wanted);
      return span && getComputedStyle(span).color;
    }, word);
  }

  async picture(name) {
    if (this.pictures) {
      await this.page.mouse.move(250, 15);
      await this.shot(name);
    }
  }

  async shot(name) {
    if (this.pictures) {
      await this.page.waitForTimeout(600);
      await this.page.screenshot({ path: path.join(this.pictures, `vscode-${name}.png`) });
    }
  }
}

const PARTS = {
  async colours(it) {
    await it.file("order.flow");
    await it.press("Control+b");
    await it.to("order.flow", "\nfn orderOf");
    const words = ["match", "Purchase", "reserve", "order", "answer"];
    await until("a variable in another colour than a parameter: only the server knows", async () => {
      const colours = await Promise.all(words.map((word) => it.colour(word)));
      return colours.every(Boolean) && new Set(colours).size === words.length;
    });
  },

  async hints(it) {
    await until("the hint of a step", async () => (await it.text()).includes("reserve(order)step?"));
  },

  async lenses(it) {
    await it.sees("the lens of all tests", ".codelens-decoration", "Run 3 tests");
    await it.picture("colours");
  },

  async hover(it) {
    await it.to("order.flow", "charge(order)?");
    await it.press("Control+k", "Control+i");
    await it.sees("what the step is for", ".monaco-hover", "Takes the money.");
    await it.sees("its limit", ".monaco-hover", "5s");
    await it.shot("hover");
    await it.press("Escape");
  },

  async completion(it) {
    await it.to("order.flow", "charge(order)?");
    await it.press("End", "Enter");
    await it.type("let cents = order.");
    for (const name of ["cents", "id", "item"]) {
      await it.sees(`${name} in the list`, ".suggest-widget .monaco-list-row", name);
    }
    await it.shot("completion");
    await it.type("ce");
    await it.press("Enter");
    await it.becomes("order.flow", "the completed field", (text) =>
      text.includes("        charge(order)?\n        let cents = order.cents\n"),
    );
    await it.press("Control+Shift+k");
    await it.becomes("order.flow", "the text as it was", (text) => !text.includes("let cents"));
  },

  async diagnostic(it) {
    await it.file("approval.flow");
    await it.to("approval.flow", 'test "the first');
    await it.press("Enter", "Enter", "ArrowUp", "ArrowUp");
    await it.line("fn told(decision: Decision) -> String {");
    await it.line("match decision {");
    await it.type('case Approved(by): return "\\(by) agrees');
    await it.becomes("approval.flow", "the brackets closed", (text) =>
      text.includes('agrees"\n    }\n}\n'),
    );
    await it.to("approval.flow", "match decision");
    await until("what is wrong", async () => {
      await it.press("Control+k", "Control+i");
      const shown = await it.page.locator(".monaco-hover:visible").allInnerTexts();
      return shown.some((each) => each.includes("does not cover") && each.includes("Rejected"));
    });
    await it.shot("diagnostic");
    await it.press("Escape");
  },

  async fix(it) {
    await it.to("approval.flow", "match decision");
    await it.press("Control+.");
    await it.sees("the fix", ".action-widget .monaco-list-row", "Add the missing arm");
    await it.shot("fix");
    await it.press("Enter");
    await it.becomes("approval.flow", "the missing arm", (text) => text.includes("case Rejected("));
    await until("no diagnostic", async () => (await it.page.locator(".squiggly-error").count()) === 0);
  },

  async format(it) {
    await it.to("approval.flow", "flow Approval");
    await it.type("\n\n\n");
    await it.becomes("approval.flow", "empty lines", (text) => text.includes("\n\n\n"));
    await it.command("Format Document");
    await it.becomes("approval.flow", "one empty line", (text) => !text.includes("\n\n\n"));
  },

  async rename(it) {
    await it.to("approval.flow", "decisions: Decision");
    await it.press("F2");
    await it.page.locator(".rename-box input:focus").waitFor();
    await it.type("answers");
    await it.press("Enter");
    await it.becomes("approval.flow", "the new name everywhere", (text) =>
      ["channel answers: Decision", "= answers.receive()", "it.answers.send("].every((each) =>
        text.includes(each),
      ),
    );
  },

  async tests(it) {
    await it.file("order.flow");
    await it.to("order.flow", "fn orderOf");
    await it.page.locator(".codelens-decoration a", { hasText: "Run 3 tests" }).click();
    await it.sees("three that passed", ".xterm-rows", "3 passed");
    await it.picture("tests");
    await it.press("Control+j");
    await it.to("order.flow", 'test "without');
    await it.page.locator(".codelens-decoration a:visible", { hasText: /^Run$/ }).nth(1).click();
    await it.sees("one that passed", ".xterm-rows", "1 passed");
    await it.press("Control+j");
  },

  async "no qoqi"(it) {
    it.studio.settings({ "flow.command": ["qoqi-nowhere"] });
    await it.page.reload();
    await it.sees("what is missing", ".notification-toast", "there is no program `qoqi-nowhere`");
    it.studio.settings({});
    await it.page.reload();
    // The window may come back at any place where it was when its state was last kept.
    const either = /answer:http\.Response|it:Handle</;
    await until("its hints again", async () => either.test(await it.text()));
  },

  async environment(it) {
    const inside = path.join(it.studio.shop, ".venv", "bin");
    const used = it.studio.in("used");
    fs.mkdirSync(inside, { recursive: true });
    fs.writeFileSync(
      path.join(inside, "qoqi"),
      `#!/bin/sh\n: >${quoted(used)}\nexec ${quoted(it.studio.in("bin", "qoqi"))} "$@"\n`,
      { mode: 0o755 },
    );
    await it.command("flow: Restart the language server");
    await until("the program of the environment in use", () => fs.existsSync(used));
  },
};

async function main() {
  const at = process.argv.indexOf("--pictures");
  const pictures = at < 0 ? undefined : path.resolve(process.argv[at + 1]);
  const [server, browserCommand, qoqi, extension, { chromium }] = [
    found("CODE_SERVER", "code-server"),
    found("CHROMIUM", "chromium", "chromium-browser", "google-chrome"),
    found("QOQI", "qoqi"),
    packaged(),
    await playwright(),
  ];
  const studio = new Studio(server, qoqi);
  let browser;
  let it;
  try {
    studio.install(extension);
    const address = await studio.start();
    browser = await chromium.launch({
      executablePath: browserCommand[0],
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
    const page = await browser.newPage({ viewport: { width: 1000, height: 760 } });
    page.setDefaultTimeout(PATIENCE);
    it = new Window(page, studio, pictures);
    await it.open(address);
    for (const [name, part] of Object.entries(PARTS)) {
      await part(it);
      console.log(`ok ${name}`);
    }
  } catch (problem) {
    if (it) {
      const picture = path.join(os.tmpdir(), "flow-vscode-failed.png");
      await it.page.screenshot({ path: picture });
      console.error(`what was on the screen: ${picture}`);
    }
    throw problem;
  } finally {
    await browser?.close();
    await studio.end();
  }
}

main().catch((problem) => {
  if (problem instanceof Missing) {
    console.log(`skipped: ${problem.message}`);
    process.exit(77);
  }
  console.error(problem.stack);
  process.exit(1);
});
