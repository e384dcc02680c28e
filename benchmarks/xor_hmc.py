"""Exact Hamiltonian Monte Carlo for binary patterns, next to the exact law. For comparison only.

Run it with ``python -m benchmarks.xor_hmc``. The sampler integrates its equations of motion
exactly, but a chain that is stopped has not arrived: what it draws is APPROXIMATE and carries no
guarantee. That is why it lives here and not among the mechanisms.

Reference: Pakman, Paninski, *Auxiliary-variable exact Hamiltonian Monte Carlo samplers for binary
distributions*, NIPS 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.common import print_table

BITS = 6
CHAINS = 400_000
DURATION = 1.5 * np.pi


@njit(cache=True)  # type: ignore[untyped-decorator]
def travel(matrix: Any, chains: int, sweeps: int, walls: bool, seed: int) -> Any:
    """Let one particle per chain move ``sweeps`` times; return the patterns reached.

    Each time it gets a new momentum and moves for three quarters of a turn, as its authors advise.

    The position y has a bit for each sign. Between walls y_i(t) = y_i cos t + q_i sin t. At the
    wall y_i = 0 the log-weight jumps by d: the particle passes with momentum sqrt(q² + 2d) when
    that exists, else it bounces. Without ``walls`` the jump is ignored, as printed in the paper.
    """
    np.random.seed(seed)  # noqa: NPY002 - compiled code has no other
    size = matrix.shape[0]
    out = np.empty(chains, dtype=np.int64)
    for chain in range(chains):
        bits = np.zeros(size, dtype=np.int64)
        for i in range(size):
            bits[i] = np.random.random() < 0.5  # noqa: NPY002 - compiled code has no other
        position = np.abs(np.random.standard_normal(size)) * (2.0 * bits - 1.0)  # noqa: NPY002 - compiled code has no other
        for _ in range(sweeps):
            momentum = np.random.standard_normal(size)  # noqa: NPY002 - compiled code has no other
            # Each coordinate meets its wall once in every half turn, so once or twice.
            meets = np.empty(2 * size)
            speed = np.empty(size)
            last = np.empty(size)
            for i in range(size):
                meets[i] = np.arctan2(-position[i], momentum[i]) % np.pi
                meets[size + i] = meets[i] + np.pi
                speed[i] = np.hypot(position[i], momentum[i])
            for event in np.argsort(meets):
                if meets[event] > DURATION:
                    break
                i = event % size
                last[i] = meets[event]
                field = matrix[i, i]
                for j in range(size):
                    if j != i:
                        field += 2.0 * matrix[i, j] * bits[j]
                jump = field if bits[i] == 0 else -field
                after = speed[i] * speed[i] + 2.0 * jump
                if not walls:
                    bits[i] = 1 - bits[i]
                elif after > 0.0:
                    speed[i] = np.sqrt(after)
                    bits[i] = 1 - bits[i]
            for i in range(size):
                # Where the sine that left the wall has come to.
                sign = 2.0 * bits[i] - 1.0
                position[i] = sign * speed[i] * np.sin(DURATION - last[i])
        place = 0
        for i in range(size):
            place += bits[i] << i
        out[chain] = place
    return out


def exact_law(matrix: Any) -> Any:
    """Return the probabilities of all patterns."""
    size = len(matrix)
    patterns = np.arange(2**size)[:, None] >> np.arange(size) & 1
    weights = np.exp(np.einsum("bi,ij,bj->b", patterns, matrix, patterns))
    return weights / weights.sum()


def run() -> list[dict[str, Any]]:
    """Compare the law after some sweeps with the exact one."""
    matrix = np.full((BITS, BITS), 0.35)
    matrix[np.diag_indices(BITS)] = -2.2
    truth = exact_law(matrix)
    rows = []
    plans = [("as printed, walls ignored", False, 1), ("as printed, walls ignored", False, 50)]
    plans += [("with wall bounces", True, sweeps) for sweeps in (1, 2, 5, 20, 100)]
    for name, walls, sweeps in plans:
        drawn = travel(matrix, CHAINS, sweeps, walls, 3)
        law = np.bincount(drawn, minlength=2**BITS) / CHAINS
        rows.append(
            {
                "sampler (approximate)": name,
                "moves": sweeps,
                "total variation from the exact law": float(np.abs(law - truth).sum() / 2),
                "share of ones": float(_ones(law)),
                "exact share": float(_ones(truth)),
            }
        )
    noise = np.bincount(np.random.default_rng(1).choice(2**BITS, CHAINS, p=truth)) / CHAINS
    rows.append(
        {
            "sampler (approximate)": "exact draws, for the chance part",
            "moves": "-",
            "total variation from the exact law": float(
                np.abs(np.resize(noise, 2**BITS) - truth).sum() / 2
            ),
            "share of ones": float(_ones(np.resize(noise, 2**BITS))),
            "exact share": float(_ones(truth)),
        }
    )
    return rows


def _ones(law: Any) -> float:
    patterns = np.arange(2**BITS)[:, None] >> np.arange(BITS) & 1
    return float(law @ patterns.sum(axis=1)) / BITS


MINUTE: dict[str, Any] = {
    "CHAINS": 500,
}
"""What is smaller in the minute's version."""


def main() -> None:
    """Print the table."""
    print_table(f"Hamiltonian chains on {BITS} coupled bits, {CHAINS:,} chains each", run())


if __name__ == "__main__":
    main()
