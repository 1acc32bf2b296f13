"""Settings of all tests.

Hypothesis asserts nothing about time, because a busy machine is no bug. Python serves in the place of what is compiled
unless OTTLA_NATIVE=1 asks for it; tests/native compares the two.
"""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("OTTLA_NATIVE", "0")

settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")
