"""One run of a slash command: its place in the log, and the turn that it may be (acp.md §5).

May not know: what a command does. Invariant: its line stands in the log before, its answer behind what it did; of one
that was cancelled while it waited there is nothing in the log.
"""

from acp_bridge.live_session import LiveSession, PromptInFlight
from acp_bridge.rpc.call import Call
from acp_bridge.translate.v1.stops import Failed, Stopped
from agent_loop.commands.compact import compaction_result
from agent_loop.commands.seam import CommandResult
from agent_loop.vocabulary import TurnEndReason


class CommandRun:
    """`new_id` names the run in the log. `stopped` and `persisted` are the answer to the prompt."""

    def __init__(self, live: LiveSession, call: Call, *, line: str, new_id: str) -> None:
        self._live = live
        self._call = call
        self._line = line
        self._id = new_id
        self.stopped = Stopped("end_turn")
        self.persisted = True

    def begin(self) -> None:
        """Log the line."""
        self._live.agent.session.append("command/run", {"commandId": self._id, "line": self._line})

    def end(self, result: CommandResult) -> None:
        """Log the answer."""
        self._live.agent.session.append("command/done", {"commandId": self._id, "ok": result.ok, "text": result.text})

    async def compact(self, instructions: str) -> CommandResult:
        """Have the conversation summarised, in a turn of its own that queues like a prompt.

        Raises `HarnessError` (`BUSY`) when too many wait already.
        """
        results: list[CommandResult] = []
        waiting = self._live.enqueue(self._id, [], compaction=instructions)
        waiting.on_claim = self.begin

        def end(reason: TurnEndReason) -> None:
            results.append(self._result(waiting, reason))
            self.end(results[0])

        waiting.on_end = end
        self._call.on_cancel(lambda: self._live.cancel_prompt(waiting))
        answer = await self._live.settled(waiting)
        self.persisted = waiting.persisted
        # a failure is what the command answers
        self.stopped = Stopped("end_turn") if isinstance(answer, Failed) else answer
        return results[0] if results else CommandResult(ok=False, text="")

    def _result(self, waiting: PromptInFlight, reason: TurnEndReason) -> CommandResult:
        return compaction_result(reason, done=self._live.agent.session.compacted_turn == waiting.turn)
