"""The inverse Cholesky factor, which both beliefs are built on.

With A = L L^T this gives L^-1. Everything that thousands of rows need of it is then a matrix
product, several times faster than triangular solves of the same size.
"""

from __future__ import annotations

import numpy as np
import scipy

from sfihilo.history import FloatArray

_BLOCK = 128


def inverse_cholesky(matrix: FloatArray) -> FloatArray:
    """L^-1, lower triangular, in double precision; LinAlgError where `matrix` is not positive."""
    if len(matrix) == 0:
        return np.empty((0, 0))
    factor = scipy.linalg.cholesky(matrix, lower=True)
    inverse, info = scipy.linalg.lapack.dtrtri(factor, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError(f"inverse factor: dtrtri failed with {info}")
    return np.ascontiguousarray(inverse)


def inverse_root(matrix: FloatArray) -> FloatArray:
    """F with F F^T the inverse of `matrix`; eigenvalues are clipped where its factor fails."""
    try:
        return inverse_cholesky(matrix).T
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(matrix)
        return np.asarray(vectors / np.sqrt(np.maximum(values, values.max() * 1e-12)))


def explained_by(factor: FloatArray, kernel: FloatArray) -> FloatArray:
    """L^-1 k for each row of `kernel`, skipping the zero blocks of L^-1."""
    explained = np.empty_like(kernel)
    for start in range(0, len(factor), _BLOCK):
        stop = start + _BLOCK
        np.matmul(kernel[:, :stop], factor[start:stop, :stop].T, out=explained[:, start:stop])
    return explained


def add_to_diagonal(matrix: FloatArray, values: FloatArray | float) -> FloatArray:
    """The matrix itself, its diagonal raised in place."""
    matrix.flat[:: len(matrix) + 1] += values
    return matrix
