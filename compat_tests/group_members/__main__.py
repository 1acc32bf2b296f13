"""`python -m compat_tests.group_members LIBRARY name=value ...`"""

import importlib
import sys

from compat_tests.group_members.telling import settings_of

importlib.import_module(f"compat_tests.group_members.{sys.argv[1]}").run(settings_of(sys.argv[2:]))
