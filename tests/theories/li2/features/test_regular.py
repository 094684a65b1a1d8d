"""The blocks of S3 by hand, and the basis for any group."""

import numpy as np
import pytest

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.features import regular


def test_permutations_multiply_like_the_group():
    table = np.asarray(parse("S3").table)
    matrices = regular.permutations(table)
    for g in range(6):
        assert matrices[g].sum(0).tolist() == [1] * 6 and np.argmax(matrices[g], 0).tolist() == table[g].tolist()
        for h in range(6):
            np.testing.assert_array_equal(matrices[g] @ matrices[h], matrices[table[g, h]])


@pytest.mark.parametrize("name", ["5", "S3", "Q8"])
def test_the_basis_is_unitary_and_the_sum_of_blocks_a_representation(name):
    irreps = decompose(parse(name))
    q, table = regular.basis(irreps), np.asarray(irreps.group.table)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(len(q)), atol=1e-12)
    sums = [regular.block_sum(irreps, h) for h in range(len(q))]
    np.testing.assert_allclose(sums[1] @ sums[2], sums[table[1, 2]], atol=1e-12)


def test_s3_has_its_plane_twice():
    degrees, often, apart = regular.counted("S3", 0)
    assert degrees.tolist() == [1, 1, 2] and apart < 1e-12
    np.testing.assert_allclose(often, [1, 1, 2], atol=1e-12)
    assert regular.counted("S3", 1)[2] > 0.1
