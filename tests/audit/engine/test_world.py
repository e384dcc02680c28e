from tulle.audit.engine.kind import kind_of
from tulle.audit.engine.world import World
from tulle.audit.graphs.kind import graph_key
from tulle.graphs.generators import all_graphs


def test_thepairs_of_a_world_are_those_with_one_edge_toggled():
    world = kind_of("graph").world(4)
    expected = {(mask, mask ^ 1 << pair) for mask in range(64) for pair in range(6)}
    assert set(zip(world.first.tolist(), world.second.tolist(), strict=True)) == expected
    assert world.outside == 0


def test_node_neighbours_work_too_and_those_outside_are_counted():
    graphs = [graph for nodes in range(4) for graph in all_graphs(nodes)]
    world = World.of("up to three nodes", "node", graphs, graph_key)
    assert len(world.datasets) == 1 + 1 + 2 + 8
    # Only graphs of three nodes have neighbours outside: eight each, one node more.
    assert world.outside == 8 * 8
    sizes = [graph.node_count for graph in graphs]
    pairs = zip(world.first.tolist(), world.second.tolist(), strict=True)
    assert all(abs(sizes[a] - sizes[b]) == 1 for a, b in pairs)


def test_equal_values_are_compared_once():
    world = kind_of("graph").world(4)
    counts = [graph.edge_count for graph in world.datasets]
    places, whose = world.distinct_pairs(counts)
    assert len(places) == 12
    for a, b in places:
        assert abs(counts[a] - counts[b]) == 1
    for a, b, place in zip(world.first, world.second, whose, strict=True):
        assert (counts[a], counts[b]) == tuple(counts[at] for at in places[place])
