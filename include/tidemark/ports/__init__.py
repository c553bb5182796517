"""What the stages ask of the world. Each adapter implements one of these Protocols.

Every method may raise ``TransientError`` (an outage: retry) or ``PermanentError`` (it will fail again);
nothing else. A write may be repeated with the same result. Times are aware and in UTC.
"""
