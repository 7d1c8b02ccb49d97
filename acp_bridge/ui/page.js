"use strict";
// The page of one session: what the server tells becomes what is shown.

const MOST_ENTRIES = 1500;
const clock = window.pageClock ?? { now: () => Date.now(), every: (callback, ms) => setInterval(callback, ms) };
const part = (id) => document.getElementById(id);
const address = (kind) => `../${kind}/${document.body.dataset.name}`;

async function execute(line) {
  const answer = await fetch(address("execute"), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ line }),
  });
  if (!answer.ok) throw new Error(`the page's server refused it (${answer.status})`);
  return answer.json();
}

const view = new LoopsView(part("loops"), execute, clock);
let leftOut = 0;

function tellLeftOut() {
  part("left-out").hidden = leftOut === 0;
  part("left-out").textContent = `${leftOut} earlier entries are not shown here; \`dsh-acp-agent sessions show\` shows all.`;
}

function tellConnection(text) {
  part("connection").textContent = text;
  part("connection").hidden = text === "";
}

const handlers = {
  begin({ facts }) {
    tellConnection("");
    leftOut = 0;
    tellLeftOut();
    part("entries").replaceChildren();
    part("growing").replaceChildren();
    part("facts").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]));
  },
  title(text) {
    document.title = text || "untitled session";
    part("title").textContent = document.title;
  },
  loops: (projection) => view.show(projection),
  owner: (owner) => view.setOwner(owner),
  // the server has escaped every text in what it sends as HTML
  entries(told) {
    const entries = part("entries");
    entries.insertAdjacentHTML("beforeend", told.html);
    leftOut += told.leftOut;
    for (; entries.children.length > MOST_ENTRIES; leftOut += 1) entries.firstElementChild.remove();
    tellLeftOut();
  },
  growing(html) {
    part("growing").innerHTML = html;
  },
  problem(text) {
    source.close();
    view.setOwner("lost");
    tellConnection(`This page stands still: ${text}. Reload it to try again.`);
  },
};

const source = new EventSource(address("events"));
for (const [name, handle] of Object.entries(handlers)) {
  source.addEventListener(name, (event) => {
    const root = document.documentElement;
    // whoever reads the end is shown what is added to it
    const atEnd = root.scrollTop > 0 && root.scrollHeight - root.scrollTop - root.clientHeight < 40;
    handle(JSON.parse(event.data));
    if (atEnd && (name === "entries" || name === "growing")) root.scrollTop = root.scrollHeight;
  });
}
source.addEventListener("error", () => {
  view.setOwner("lost");
  tellConnection("The connection to `dsh-acp-agent ui` is lost. Start it again and open the address that it prints.");
});
