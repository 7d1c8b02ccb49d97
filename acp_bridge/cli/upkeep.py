"""`sessions repair` and `sessions delete`.

May not know: how a log is kept. Invariant: nothing is removed that was not named, and, unless `--yes`, confirmed.
"""

from acp_bridge.cli.arguments import DeleteSessions
from acp_bridge.cli.parts import Parts
from acp_bridge.cli.selection import CommandError, Selected, select
from agent_loop.session.store import SessionStoreError

_SHOWN = 20


async def repair_session(parts: Parts, given: str) -> None:
    """Raises `CommandError`, `SessionStoreError`."""
    selected = await select(parts.store, given)
    report = await parts.store.salvage(selected.id)
    if report.quarantine_path is None:
        parts.streams.tell(f"session {selected.id} is healthy: {report.kept} events, nothing was changed")
        return
    parts.streams.tell(f"session {selected.id} was mended: {report.kept} events were kept")
    for row in report.quarantined[:_SHOWN]:
        parts.streams.tell(f"line {row.line} (byte {row.offset}): {row.what}")
    if len(report.quarantined) > _SHOWN:
        parts.streams.tell(f"and {len(report.quarantined) - _SHOWN} more")
    parts.streams.tell(f"what was put aside lies in {report.quarantine_path}")


async def chosen(parts: Parts, command: DeleteSessions) -> list[Selected]:
    """The sessions that are to be deleted, each once. Raises `CommandError`, `SessionStoreError`."""
    found = [await select(parts.store, given) for given in command.ids]
    return list({selected.id: selected for selected in found}.values())


def confirmed(parts: Parts, sessions: list[Selected]) -> bool:
    """Ask on the terminal. Raises `CommandError` when there is none."""
    if not parts.streams.source.isatty():
        raise CommandError("nobody can be asked here: --yes deletes without asking")
    for selected in sessions:
        parts.streams.say(_named(selected))
    what = "this session" if len(sessions) == 1 else f"these {len(sessions)} sessions"
    parts.streams.err.write(f"delete {what} for good? [y/N] ")
    parts.streams.err.flush()
    return parts.streams.source.readline().strip().lower() in {"y", "yes"}


async def delete_sessions(parts: Parts, sessions: list[Selected]) -> None:
    """Delete each; one that cannot be deleted keeps none of the others. Raises `CommandError` at the end then."""
    failures: list[str] = []
    for selected in sessions:
        try:
            deleted = await parts.store.delete(selected.id)
        except SessionStoreError as error:
            failures.append(error.message)
        else:
            parts.streams.tell(f"{'deleted' if deleted else 'gone already'}: {_named(selected)}")
    if failures:
        raise CommandError("; ".join(failures))


def _named(selected: Selected) -> str:
    title = selected.summary.title if selected.summary else None
    return f"{selected.id} {title}" if title else selected.id
