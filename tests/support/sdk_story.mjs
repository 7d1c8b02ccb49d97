// The official TypeScript SDK's client, with files and terminals, telling the story of sdk_story.py.
//
//   node sdk_story.mjs STORY.json   (in the agent's environment and directory; the SDK is found through SDK_MODULE)
//
// STORY.json: {command, cwd, prompts, permissions, unsaved, output}. Prints what was seen as one JSON object.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'

const acp = await import(process.env.SDK_MODULE)
const story = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const { agent: AGENT, client: CLIENT } = acp.methods
const CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true }

/** Runs `work(call, seen)` against an agent of its own; `seen` is what its client was asked and shown. */
async function withAgent(permissions, work) {
  const seen = { updates: [], asked: [], offered: [], read: [], written: [], terminals: new Map() }
  const answers = [...permissions]
  const agent = spawn(story.command, [], { cwd: story.cwd, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(agent, 'exit')
  const app = acp
    .client({ name: 'story' })
    .onNotification(CLIENT.session.update, ({ params }) => { seen.updates.push(params.update) })
    .onRequest(CLIENT.session.requestPermission, ({ params }) => {
      seen.asked.push(params.toolCall)
      seen.offered.push(params.options.map((option) => option.kind))
      const kind = answers.shift()
      if (kind === 'cancelled') return { outcome: { outcome: 'cancelled' } }
      const option = params.options.find((each) => each.kind === kind)
      return { outcome: { outcome: 'selected', optionId: option.optionId } }
    })
    .onRequest(CLIENT.fs.readTextFile, ({ params }) => {
      if (!params.path.endsWith('todo.txt')) throw acp.RequestError.resourceNotFound(params.path)
      seen.read.push(params.path)
      return { content: story.unsaved }
    })
    .onRequest(CLIENT.fs.writeTextFile, ({ params }) => {
      seen.written.push([params.path, params.content])
      return {}
    })
    .onRequest(CLIENT.terminal.create, () => {
      const terminalId = `terminal-${seen.terminals.size + 1}`
      seen.terminals.set(terminalId, true)
      return { terminalId }
    })
    .onRequest(CLIENT.terminal.waitForExit, () => ({ exitCode: 0 }))
    .onRequest(CLIENT.terminal.output, () => ({
      output: story.output, truncated: false, exitStatus: { exitCode: 0 },
    }))
    .onRequest(CLIENT.terminal.release, ({ params }) => {
      seen.terminals.set(params.terminalId, false)
      return {}
    })
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout))
  await app.connectWith(stream, async (context) => {
    const call = (method, params) => context.request(method, params)
    await call(AGENT.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: CAPABILITIES })
    await work(call, seen)
  })
  agent.stdin.end()
  const [code] = await ended
  if (code !== 0) throw new Error(`the agent exited with ${code}`)
}

const text = (seen) =>
  seen.updates.filter((each) => each.sessionUpdate === 'agent_message_chunk').map((each) => each.content.text)

const told = {}
const cwd = story.cwd
let sessionId
const say = async (call, words) =>
  (await call(AGENT.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] })).stopReason

await withAgent(story.permissions, async (call, seen) => {
  const opened = await call(AGENT.session.new, { cwd, mcpServers: [] })
  sessionId = opened.sessionId
  told.mode = opened.modes.currentModeId
  told.options = opened.configOptions.map((option) => option.id)
  told.stops = []
  for (const words of story.prompts.slice(0, -1)) told.stops.push(await say(call, words))
  await call(AGENT.session.setMode, { sessionId, modeId: 'full' })
  const change = { sessionId, configId: 'reasoning_effort', value: 'high' }
  const { configOptions } = await call(AGENT.session.setConfigOption, change)
  told.effort = configOptions.find((option) => option.id === 'reasoning_effort').currentValue
  told.stops.push(await say(call, story.prompts.at(-1)))
  told.asked = seen.asked.map((each) => each.title)
  told['first options'] = seen.offered[0]
  const cards = new Map()
  for (const each of seen.updates) if (each.toolCallId) cards.set(each.toolCallId, each.status)
  told.cards = [...cards.values()]
  told['files read'] = seen.read
  told['files written'] = seen.written
  told.terminals = seen.terminals.size
  told['terminals open'] = [...seen.terminals.values()].filter(Boolean).length
  told.modes = seen.updates.filter((each) => each.sessionUpdate === 'current_mode_update').map((each) => each.currentModeId)
  const { sessions } = await call(AGENT.session.list, { cwd })
  told.titles = sessions.filter((row) => row.sessionId === sessionId).map((row) => row.title)
})

await withAgent([], async (call, seen) => {
  const loaded = await call(AGENT.session.load, { sessionId, cwd, mcpServers: [] })
  told.loaded = text(seen).join(' ')
  told['loaded mode'] = loaded.modes.currentModeId
  seen.updates.length = 0
  await say(call, 'go on')
  told['after the load'] = text(seen).join('')
  await call(AGENT.session.close, { sessionId })
  seen.updates.length = 0
  await call(AGENT.session.resume, { sessionId, cwd, mcpServers: [] })
  const kinds = seen.updates.map((each) => each.sessionUpdate)
  told['updates of the resume'] = kinds.filter((kind) => kind !== 'available_commands_update')
  await say(call, 'and on')
  told['after the resume'] = text(seen).join('')
})

console.log(JSON.stringify(told))
