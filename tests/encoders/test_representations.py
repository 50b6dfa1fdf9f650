import torch

from headstart.encoders.representations import Representations


def test_at_words_keeps_first_pieces_and_marks_missing_words() -> None:
    layers = torch.arange(2 * 2 * 3).view(2, 2, 3, 1).float()
    R = Representations(layers, torch.ones(2, 3, dtype=torch.bool))
    words = R.at_words(torch.tensor([[0, 2], [1, -1]]))
    assert words.mask.tolist() == [[True, True], [True, False]]
    assert words.layers[:, 0, :, 0].tolist() == [[0, 2], [6, 8]]
    assert words.layers[:, 1, 0, 0].tolist() == [4, 10]
