"use strict";
// The Loops view. It sees a projection `{loops: [{id, prompt, time_in_seconds, next_at}]}` and `execute(line)`, which
// runs a command line and settles with `{ok, text}`; nothing else. Texts become text nodes only.

const HEADING = 80;
const PATIENCE_MS = 30000; // between the answer to a deletion and the projection that shows it

const NOTES = {
  open: "The agent that has this session open cannot be reached from here: delete loops in the editor.",
  none: "No running agent has this session open: its loops wait until it is opened again, and cannot be deleted here.",
  lost: "Loops cannot be deleted while this page is not connected.",
};

function loopHeading(prompt) {
  const line = [...prompt.split(/\r\n|[\n\r\u2028\u2029]/, 1)[0]];
  return line.length > HEADING ? line.slice(0, HEADING - 3).join("") + "…" : line.join("");
}

function loopInterval(seconds) {
  if (seconds % 3600 === 0) return `Every ${seconds / 3600}h`;
  return seconds % 60 === 0 ? `Every ${seconds / 60}m` : `Every ${seconds}s`;
}

function loopDue(nextAt, now) {
  const left = nextAt - now;
  if (left <= -1000) return ["overdue", "Overdue"];
  if (left <= 0) return ["due", "Due now"];
  const seconds = Math.ceil(left / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const days = Math.floor(hours / 24);
  const parts = days ? [`${days}d`, `${hours % 24}h`] : hours ? [`${hours}h`, `${minutes}m`]
    : minutes ? [`${minutes}m`, `${rest}s`] : [`${rest}s`];
  return ["scheduled", `Next in ${parts.filter((part, at) => at === 0 || !/^0/.test(part)).join(" ")}`];
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function button(className, text, act) {
  const made = element("button", className, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

class LoopRow {
  constructor(loop, view) {
    this.view = view;
    this.state = "idle"; // idle → confirming → busy → gone, or back to confirming with a problem
    this.heading = element("h3", "");
    this.every = element("span", "every");
    this.next = element("span", "next");
    this.remove = button("delete", "Delete", () => this.ask());
    this.prompt = element("pre", "prompt");
    this.prompt.tabIndex = 0;
    this.question = element("span", "question", "Delete this loop? Its prompt is not sent any more.");
    this.yes = button("danger yes", "Delete loop", () => this.confirm());
    this.no = button("no", "Keep", () => this.keep());
    this.alert = element("p", "alert");
    this.alert.setAttribute("role", "alert");
    this.confirmation = element("div", "confirm");
    this.confirmation.append(this.question, this.yes, this.no, this.alert);
    const row = element("div", "row");
    row.append(this.heading, this.every, this.next, this.remove);
    this.item = element("li", "loop");
    this.item.append(row, this.prompt, this.confirmation);
    this.problem = "";
    this.update(loop);
  }

  update(loop) {
    this.loop = loop;
    this.heading.textContent = loopHeading(loop.prompt);
    this.every.textContent = loopInterval(loop.time_in_seconds);
    this.prompt.textContent = loop.prompt;
    this.paint();
  }

  paint() {
    const now = this.view.now();
    if (this.state === "busy" && this.answeredAt !== null && now - this.answeredAt > PATIENCE_MS) {
      this.fail("The deletion was carried out, but the log does not show it.");
      return;
    }
    const [state, text] = loopDue(this.loop.next_at, now);
    this.next.dataset.state = state;
    if (this.next.textContent !== text) this.next.textContent = text;
    const busy = this.state === "busy";
    this.remove.hidden = this.state !== "idle";
    this.remove.disabled = !this.view.reachable;
    this.confirmation.hidden = this.state === "idle";
    this.item.setAttribute("aria-busy", String(busy));
    this.yes.textContent = busy ? "Deleting…" : "Delete loop";
    this.yes.disabled = busy || !this.view.reachable;
    this.no.disabled = busy;
    this.alert.hidden = this.problem === "";
    if (this.alert.textContent !== this.problem) this.alert.textContent = this.problem;
  }

  ask() {
    this.state = "confirming";
    this.paint();
    this.no.focus();
  }

  keep() {
    this.state = "idle";
    this.problem = "";
    this.paint();
    this.remove.focus();
  }

  async confirm() {
    this.state = "busy";
    this.problem = "";
    this.answeredAt = null;
    this.paint();
    try {
      const answer = await this.view.execute(`/loop delete ${this.loop.id}`);
      if (answer.ok) this.answeredAt = this.view.now(); // the projection drops the row
      else this.fail(answer.text);
    } catch (error) {
      this.fail(error.message);
    }
  }

  fail(text) {
    this.state = "confirming";
    this.problem = `It was not deleted: ${text}`;
    this.paint();
  }
}

class LoopsView {
  // `clock`: `now()` in epoch ms, `every(callback, ms)`
  constructor(root, execute, clock) {
    this.execute = execute;
    this.now = clock.now;
    this.reachable = false;
    this.rows = new Map();
    this.list = element("ul", "");
    this.note = element("p", "quiet note");
    this.empty = element("div", "empty");
    const guidance = element("p", "quiet", "In your editor, send ");
    guidance.append(element("code", "", "/loop <seconds> <prompt>"), " to make one.");
    this.empty.append(element("p", "", "No loops yet"), guidance);
    root.append(this.note, this.empty, this.list);
    this.empty.hidden = this.note.hidden = true;
    clock.every(() => this.rows.forEach((row) => row.paint()), 1000);
  }

  show(projection) {
    const loops = [...projection.loops].sort((one, other) => one.next_at - other.next_at);
    const kept = new Set(loops.map((loop) => loop.id));
    for (const [id, row] of this.rows) {
      if (kept.has(id)) continue;
      row.item.remove();
      this.rows.delete(id);
    }
    loops.forEach((loop, place) => {
      const known = this.rows.get(loop.id);
      const row = known ?? new LoopRow(loop, this);
      if (known) known.update(loop);
      this.rows.set(loop.id, row);
      // what stands in its place is not moved: it would lose the focus
      if (this.list.children[place] !== row.item) this.list.insertBefore(row.item, this.list.children[place] ?? null);
    });
    this.empty.hidden = loops.length > 0;
    this.note.hidden = loops.length === 0 || this.reachable;
  }

  // `owner`: "reachable", or a key of NOTES
  setOwner(owner) {
    this.reachable = owner === "reachable";
    this.note.textContent = NOTES[owner] ?? "";
    this.note.hidden = this.rows.size === 0 || this.reachable;
    this.rows.forEach((row) => row.paint());
  }
}
