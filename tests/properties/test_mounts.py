"""What the options of bubblewrap make visible is what the plan's rules say, whatever rules there are."""

from hypothesis import given
from hypothesis import strategies as st

from bash_exec.mounts import MountPlan, is_below

# no such folders on this machine: a rule for a link is told by examples
PATHS = st.lists(st.sampled_from("ab"), max_size=3).map(lambda names: "/" + "/".join(["dsh-nowhere", *names]))
RULES = st.lists(st.tuples(st.sampled_from(["read", "write", "empty"]), PATHS), max_size=8)
KINDS = {"--ro-bind": "read", "--bind": "write", "--tmpfs": "empty"}


def mounted(argv):
    """`(kind, place)` in the order in which they are mounted."""
    found = []
    rest = list(argv)
    while rest[0] != "--remount-ro":
        kind = KINDS[rest.pop(0)]
        if kind != "empty":
            assert rest[0] == rest[1]
            del rest[0]
        found.append((kind, rest.pop(0)))
    return found


@given(rules=RULES, path=PATHS)
def test_the_last_mount_over_a_path_is_the_one_that_its_rule_asks_for(rules, path):
    plan = MountPlan()
    for kind, place in rules:
        plan.put(kind, [place])
    over = [kind for kind, place in mounted(plan.arguments()) if is_below(path, place)]
    deepest = max((place for _, place in rules if is_below(path, place)), key=len, default=None)
    wanted = [kind for kind, place in rules if place == deepest][-1:]
    assert over[-1:] == wanted
    assert plan.shows(path) is (wanted in (["read"], ["write"]))
