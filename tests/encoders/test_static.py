import torch

from headstart.encoders.static import Static, StaticConfig


def test_a_word_has_one_vector_wherever_it_stands_and_padding_has_none() -> None:
    encoder = Static(StaticConfig(dim=4), vocabulary_size=10)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    R = encoder(torch.tensor([[3, 5, 3], [5, 0, 0]]), mask)
    assert R.layers.shape == (1, 2, 3, 4)
    torch.testing.assert_close(R.layers[0, 0, 0], R.layers[0, 0, 2], rtol=0, atol=0)
    torch.testing.assert_close(R.layers[0, 0, 1], encoder.vectors[5], rtol=0, atol=0)
    assert not R.layers[0, 1, 1:].any()
