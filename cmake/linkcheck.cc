// The one source of every link check: a shared library needs one.
