"""Hypothesis profiles: `default` is quick, `long` (bin/test --long) digs. No deadline: shared machines are noisy."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", deadline=None, max_examples=60, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("default"), max_examples=1500)
settings.load_profile("default")
