"""The radial basis function kernel, of policies and of outcomes (paper: eq:app_forward_kernel)."""

from __future__ import annotations

import numpy as np

from sfihilo.history import FloatArray

_BLOCK = 128


def rbf(first: FloatArray, second: FloatArray, length_scale: float) -> FloatArray:
    """Kernel matrix in the precision of its arguments, in blocks that stay in the cache."""
    dtype = first.dtype
    a, b = first / dtype.type(length_scale), second / dtype.type(length_scale)
    # Two more columns carry the squared norms, so that one product gives the whole exponent.
    left = np.column_stack([a, -0.5 * np.einsum("ij,ij->i", a, a), np.ones(len(a), dtype)])
    right = np.column_stack([b, np.ones(len(b), dtype), -0.5 * np.einsum("ij,ij->i", b, b)]).T
    kernel = np.empty((len(a), len(b)), dtype)
    for start in range(0, len(a), _BLOCK):
        block = kernel[start : start + _BLOCK]
        np.matmul(left[start : start + _BLOCK], right, out=block)
        np.exp(block, out=block)  # eq:app_forward_kernel
    return kernel
