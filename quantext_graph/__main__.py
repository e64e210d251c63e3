from quantext_graph.apps.cli.main import main

main()
