from quantext_graph.cli import main

main()
