from __future__ import annotations

import torch
import torch.nn.functional as F

from arcwise.backbones import Small


def test_it_learns_to_tell_two_textures_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(64) % 2
    stripes = torch.arange(16) % 2 * 2.0 - 1.0
    pictures = torch.where(labels.view(-1, 1, 1, 1) == 0, stripes.view(1, 1, 16, 1), stripes.view(1, 1, 1, 16))
    pictures = pictures + 0.5 * torch.randn(64, 3, 16, 16, generator=generator)
    model = Small((3, 16, 16), 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(40):
        loss = F.cross_entropy(model(pictures[:32]), labels[:32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    predicted = model.eval()(pictures[32:]).argmax(dim=1)
    assert (predicted == labels[32:]).float().mean() > 0.9


def test_where_in_the_picture_a_thing_is_hardly_matters() -> None:
    """The maximum over positions: shifting by the stride of the network (8 pixels), on an empty ground, changes nothing."""
    model = Small((1, 64, 64), 4).eval()
    picture = torch.zeros(1, 1, 64, 64)
    picture[..., 24:32, 24:32] = torch.randn(8, 8)
    with torch.no_grad():
        torch.testing.assert_close(model(picture.roll(8, dims=3)), model(picture), rtol=1e-4, atol=1e-5)
