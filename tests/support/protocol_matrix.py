"""What of ACP is spoken, read from the code, with the test that covers each row: the table of `docs/protocol.md`.

python -m tests.support.protocol_matrix        writes it there
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from acp_bridge.methods.v1.initialize import SignIn, initialize_result
from acp_bridge.methods.v1.table import CANCEL, METHODS
from acp_bridge.schema import ClientCapabilities

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocol.md"
BEGIN, END = "<!-- written by tests/support/protocol_matrix.py -->\n", "<!-- end -->\n"

# all that there is in the stable protocol (schema-v1.json); which of it is spoken is looked for in the code
UPDATES = (
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
)
CLIENT_METHODS = (
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
    "elicitation/create",
)
# the fields of `ClientCapabilities`, as they are called on the wire
ON_THE_WIRE = {
    "notices": "session.notices",
    "compaction": "session.compaction",
    "boolean_options": "session.configOptions.boolean",
    "read_files": "fs.readTextFile",
    "write_files": "fs.writeTextFile",
    "terminals": "terminal",
    "terminal_output": "_meta.terminal_output",
    "elicitation_form": "elicitation.form",
}
# read by `initialize` itself, on the light path
READ_AT_ONCE = ("auth.terminal", "_meta.terminal-auth")

_BRIDGE, _PROCESS = "tests/acp_bridge", "tests/acp_bridge/process"
_COMPACTIONS = f"{_BRIDGE}/test_compaction.py::test_a_client_that_knows_compactions_sees_the_summary_grow"
_REMOTE = "tests/agent_loop/mcp/test_remote.py::test_a_server_at_an_address_is_used_with_the_headers_that_it_wants"
_STORY = (
    f"{_PROCESS}/test_sdk_client.py::"
    "test_the_official_client_is_asked_reads_writes_opens_terminals_chooses_lists_loads_and_resumes"
)
# group → name → a test, or the snapshot scenario in whose transcript it stands
COVERED: dict[str, dict[str, str]] = {
    "method": {
        "initialize": f"{_BRIDGE}/test_connection.py::test_initialize_names_the_agent_and_exactly_what_it_can",
        "authenticate": f"{_BRIDGE}/test_connection.py::test_authenticate_succeeds_when_a_key_exists",
        "logout": f"{_BRIDGE}/test_connection.py::"
        "test_after_a_logout_a_prompt_needs_a_key_until_the_client_authenticates",
        "session/new": f"{_BRIDGE}/test_sessions.py::test_a_new_session_comes_with_modes_and_then_its_commands",
        "session/load": f"{_BRIDGE}/test_sessions.py::test_a_stored_session_is_shown_whole_before_the_answer",
        "session/resume": f"{_BRIDGE}/test_lifecycle.py::test_a_resumed_session_shows_nothing_and_remembers_everything",
        "session/fork": f"{_BRIDGE}/test_lifecycle.py::test_fork_is_there_only_when_it_is_switched_on",
        "session/list": f"{_BRIDGE}/test_listing.py::"
        "test_a_row_tells_where_it_belongs_what_it_is_called_and_when_it_was_used",
        "session/close": f"{_BRIDGE}/test_lifecycle.py::test_a_closed_session_is_not_live_and_can_be_opened_again",
        "session/delete": f"{_BRIDGE}/test_lifecycle.py::test_a_deleted_session_is_gone_and_deleting_it_again_succeeds",
        "session/set_mode": f"{_BRIDGE}/test_sessions.py::test_the_mode_can_change_at_any_time",
        "session/set_config_option": _STORY,
        "session/prompt": f"{_BRIDGE}/test_prompt.py::test_a_prompt_streams_its_answer_and_ends_last",
        "session/cancel": f"{_BRIDGE}/test_prompt.py::test_cancel_settles_what_came_before_it_and_nothing_after",
        "$/cancel_request": f"{_BRIDGE}/test_prompt.py::test_cancel_request_aborts_the_running_prompt",
        "_dsh/clock/advance": f"{_BRIDGE}/test_connection.py::"
        "test_the_clock_of_a_replay_can_be_moved_and_a_real_one_cannot",
    },
    "update": {
        "user_message_chunk": "snapshots/load-replay",
        "agent_message_chunk": "snapshots/text-turn",
        "agent_thought_chunk": "snapshots/text-turn",
        "tool_call": "snapshots/tool-call-turn",
        "tool_call_update": "snapshots/tool-call-turn",
        "plan": "snapshots/plan",
        "available_commands_update": "snapshots/handshake",
        "current_mode_update": "snapshots/client-files",
        "config_option_update": "snapshots/client-files",
        "session_info_update": "snapshots/text-turn",
        "usage_update": "snapshots/text-turn",
        "notice": f"{_BRIDGE}/test_sessions.py::test_a_client_that_shows_notices_gets_a_notice",
        "compaction_update": _COMPACTIONS,
        "compaction_summary_chunk": _COMPACTIONS,
    },
    "asked of the client": {
        "session/request_permission": "snapshots/tool-call-rejected",
        **dict.fromkeys(CLIENT_METHODS[1:3], "snapshots/client-files"),
        **dict.fromkeys(CLIENT_METHODS[3:8], "snapshots/client-terminal"),
        "elicitation/create": "snapshots/ask-user",
    },
    "agent capability": {
        "loadSession": "snapshots/load-replay",
        "promptCapabilities.image": "snapshots/images",
        "promptCapabilities.embeddedContext": "snapshots/prompt-blocks",
        "mcpCapabilities.http": _REMOTE,
        "mcpCapabilities.sse": _REMOTE,
        "sessionCapabilities.list": _STORY,
        "sessionCapabilities.resume": _STORY,
        "sessionCapabilities.close": _STORY,
        "sessionCapabilities.delete": f"{_BRIDGE}/test_lifecycle.py::"
        "test_a_stored_session_is_deleted_without_being_opened",
        "sessionCapabilities.additionalDirectories": f"{_BRIDGE}/test_sessions.py::"
        "test_further_directories_belong_to_the_workspace_as_long_as_they_are_named",
        "sessionCapabilities.fork": f"{_BRIDGE}/test_lifecycle.py::"
        "test_a_fork_remembers_what_its_parent_said_and_leaves_it_untouched",
        "auth.logout": "snapshots/sign-in-and-out",
    },
    "client capability": {
        "session.notices": f"{_BRIDGE}/test_sessions.py::test_a_client_that_shows_notices_gets_a_notice",
        "session.compaction": _COMPACTIONS,
        "fs.readTextFile": f"{_BRIDGE}/test_client_files.py::test_only_what_is_offered_is_asked_for",
        "fs.writeTextFile": f"{_BRIDGE}/test_client_files.py::test_only_what_is_offered_is_asked_for",
        "terminal": f"{_BRIDGE}/test_client_terminal_card.py::"
        "test_a_client_without_terminals_gets_the_command_run_here",
        "_meta.terminal_output": f"{_BRIDGE}/test_prompt.py::"
        "test_a_terminal_shows_output_while_the_command_runs_and_closes_once",
        "auth.terminal": f"{_BRIDGE}/test_handshake.py::test_a_client_with_a_terminal_is_told_how_to_log_in_there",
        "_meta.terminal-auth": f"{_BRIDGE}/test_handshake.py::"
        "test_a_client_with_a_terminal_is_told_how_to_log_in_there",
        "elicitation.form": f"{_BRIDGE}/test_elicitation.py::test_a_client_without_forms_is_not_asked",
    },
}


class Row(NamedTuple):
    """`covered` None: it is not spoken, or nothing depends on it."""

    group: str
    name: str
    covered: str | None


def spoken() -> dict[str, list[str]]:
    """What the code speaks, by group."""
    texts, names = _constants(), _attributes()
    advertised = initialize_result(SignIn("p", "KEY", ("x",), {}), {}, fork=True, images=True)["agentCapabilities"]
    return {
        "method": ["initialize", *METHODS, CANCEL, "$/cancel_request"],
        "update": [name for name in UPDATES if name in texts],
        "asked of the client": [name for name in CLIENT_METHODS if {name, name.removeprefix("fs/")} & texts],
        "agent capability": list(_flat(advertised)),
        "client capability": [*(wire for field, wire in ON_THE_WIRE.items() if field in names), *READ_AT_ONCE],
    }


def not_spoken() -> list[str]:
    """What the stable protocol has besides."""
    said = spoken()
    pairs = (("update", UPDATES), ("asked of the client", CLIENT_METHODS), ("client capability", ON_THE_WIRE.values()))
    return [name for group, all_names in pairs for name in all_names if name not in said[group]]


def table() -> str:
    """The rows as Markdown."""
    lines = ["| | name | covered by |", "|---|---|---|"]
    for group, names in spoken().items():
        for name in names:
            covered = COVERED[group][name]
            path, _, test = covered.partition("::")
            shown = f"`{test}` in [{Path(path).name}](../{path})" if test else f"[{path}](../{path})"
            lines.append(f"| {group} | `{name}` | {shown} |")
    rest = ", ".join(f"`{name}`" for name in not_spoken())
    return "\n".join(lines) + "\n" + (f"\nNot used: {rest}.\n" if rest else "")


def written(page: str) -> str:
    """The page with its table as it should be."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is not False:
            yield prefix + name


@cache
def _trees() -> tuple[ast.Module, ...]:
    product = (path for path in (ROOT / "acp_bridge").rglob("*.py") if "testing" not in path.parts)
    return tuple(ast.parse(path.read_text("utf-8")) for path in product)


def _constants() -> set[str]:
    nodes = (node for tree in _trees() for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _attributes() -> set[str]:
    """The fields of `ClientCapabilities` that somebody reads."""
    nodes = (node for tree in _trees() for node in ast.walk(tree))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return read & set(ClientCapabilities.model_fields)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), encoding="utf-8")
