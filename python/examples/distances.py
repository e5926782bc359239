# # How far is it? A floor with walls, and the way out of every place
#
#     pip install ./python matplotlib      (in the folder of the repository)
#     python distances.py distances.png
#
# A cell of the floor is a vertex; neighbours that are both free have an edge. One search from the exit gives the distance of every cell and,
# by the parents, the way out from it.

# %%
import sys

import numpy as np

import socbfs

side = 401
rng = np.random.default_rng(3)
free = np.ones((side, side), bool)
for _ in range(140):  # walls of random length, across and down
    row, column = rng.integers(0, side, 2)
    length = rng.integers(20, 160)
    if rng.random() < 0.5:
        free[row, column : column + length] = False
    else:
        free[row : row + length, column] = False
exit_cell = (side - 1, side // 2)
for row, column in rng.integers(0, side - 4, (900, 2)):  # and doors
    free[row : row + 4, column : column + 4] = True
free[exit_cell] = True

# %% The edges: pairs of free cells, one below and one beside the other.
cell = np.arange(side * side).reshape(side, side)
below = np.stack([cell[:-1][free[:-1] & free[1:]], cell[1:][free[:-1] & free[1:]]], axis=1)
beside = np.stack([cell[:, :-1][free[:, :-1] & free[:, 1:]], cell[:, 1:][free[:, :-1] & free[:, 1:]]], axis=1)
graph = socbfs.Graph.from_edges(np.concatenate([below, beside]), vertices=side * side)

# %% One search.
tree = graph.bfs(int(cell[exit_cell]), levels=True)
print(f"{tree.reached} of {free.sum()} free cells reach the exit, the farthest in {tree.depth - 1} steps; searched in {tree.seconds * 1e3:.2f} ms")

# %% The way out from the farthest cell: from parent to parent.
way = [int(tree.levels.argmax())]
while tree.parents[way[-1]] != way[-1]:
    way.append(int(tree.parents[way[-1]]))
assert len(way) == tree.depth

# %% The picture.
import matplotlib.pyplot as plt

distance = np.ma.masked_less(tree.levels.reshape(side, side), 0)
figure, axes = plt.subplots(figsize=(7, 6))
image = axes.imshow(distance, cmap="viridis")
image.cmap.set_bad("black")
axes.plot(np.array(way) % side, np.array(way) // side, color="white", linewidth=1)
axes.set(title="Steps to the exit, and the longest way out", xticks=[], yticks=[])
figure.colorbar(image, label="steps")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
else:
    plt.show()
