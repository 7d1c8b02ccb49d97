"""One entry of every kind, hostile where it can be."""

from acp_bridge.cli.entries import Changed, Diff, Entry, Noticed, Planned, Said, ToolRun, TurnEnded, TurnStarted

ESCAPES = "\x1b]0;title\x07\x1b[2J"
MARKUP = "</pre><script>document.title='acted'</script><img src=x onerror=\"document.title='acted'\">"


def tool_run(**fields) -> ToolRun:
    """A command that printed nothing and ended well."""
    ordinary = {
        "title": "make all",
        "kind": "execute",
        "status": "completed",
        "command": True,
        "directory": None,
        "described": (),
        "output": None,
        "texts": (),
        "diffs": (),
        "ended": "exit 0",
    }
    return ToolRun(**(ordinary | fields))


def hostile_entries() -> list[Entry]:
    """Every kind of entry with sequences and markup in every text."""
    bad = f"{ESCAPES}{MARKUP}"
    return [
        TurnStarted(1, 0),
        *(Said(speaker, bad, source=bad, continued=True) for speaker in ("user", "agent", "thought", "context")),
        tool_run(
            title=bad,
            directory=bad,
            described=(bad,),
            output=bad,
            texts=(bad, f"```console\n{bad}\n```"),
            diffs=(Diff(bad, None, bad), Diff(bad, bad, "new")),
            ended=bad,
        ),
        tool_run(command=False, title=bad, status="unfinished", ended=None),
        Noticed(bad, bad, bad),
        Planned(((bad, bad),)),
        Changed(bad, bad),
        TurnEnded(bad, failed=True),
    ]
