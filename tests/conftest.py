"""Settings of all tests: hypothesis asserts nothing about time, because a busy machine is no bug."""

from hypothesis import HealthCheck, settings

settings.register_profile("ottla", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ottla")
