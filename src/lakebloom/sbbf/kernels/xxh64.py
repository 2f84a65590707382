"""The constants of XXH64, which both forms of the kernels compute with seed 0."""

from __future__ import annotations

PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
