"""Numbers that no parameter takes, with the error and the words that its name is followed by."""

import numpy as np

NOT_POSITIVE = [
    (0, ValueError, "must be finite and positive, got 0"),
    (0.0, ValueError, r"must be finite and positive, got 0\.0"),
    (-1.5, ValueError, r"must be finite and positive, got -1\.5"),
    (np.nan, ValueError, "must be finite and positive, got nan"),
    (np.inf, ValueError, "must be finite and positive, got inf"),
    ("wide", TypeError, "must be a number, got 'wide'"),
    (None, TypeError, "must be a number, got None"),
    (True, TypeError, "must be a number, got True"),
    (np.True_, TypeError, "must be a number, got"),
    ([0.5], TypeError, r"must be a number, got \[0\.5\]"),
]
NOT_WHOLE = [
    (0, ValueError, "must be 1 or more, got 0"),
    (-3, ValueError, "must be 1 or more, got -3"),
    *((value, TypeError, f"must be a whole number, got {value!r}") for value in (2.5, 2.0, True, "few", None)),
    (np.True_, TypeError, "must be a whole number, got"),
]
