"""`python -m compat_tests.transactional LIBRARY name=value ...`"""

import importlib
import sys

from compat_tests.group_members.telling import settings_of
from compat_tests.transactional.obeying import obey

library = importlib.import_module(f"compat_tests.transactional.{sys.argv[1]}")
obey(library.Client(settings_of(sys.argv[2:])), library.ERRORS)
