"""The one process of a home that plans, stores and drives the engines."""

from aver.fast_start import import_without

import_without("hashlib", "_hashlib")
import_without("hmac", "_hashlib")
