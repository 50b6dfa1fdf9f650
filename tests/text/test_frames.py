import io

import numpy as np
import pytest

from headstart.text.frames import Frame, read_frame, write_frame


def test_frames_come_back_one_after_the_other():
    frames = [
        Frame({"a": [1, None]}, [np.arange(5, dtype=np.int32), np.array([True, False])], ["é", "", "中文"]),
        Frame(),
        Frame(texts=["x" * 100_000]),
    ]
    stream = io.BytesIO()
    for frame in frames:
        write_frame(stream, frame)
    stream.seek(0)
    for frame in frames:
        found = read_frame(stream)
        assert found is not None
        assert (found.header, found.texts) == (frame.header, frame.texts)
        assert [(array.dtype, array.tolist()) for array in found.arrays] == [
            (array.dtype, array.tolist()) for array in frame.arrays
        ]
    assert read_frame(stream) is None


def test_a_stream_that_ends_inside_a_frame():
    stream = io.BytesIO()
    write_frame(stream, Frame(texts=["some text"]))
    for size in range(1, len(stream.getvalue())):
        with pytest.raises(EOFError):
            read_frame(io.BytesIO(stream.getvalue()[:size]))
