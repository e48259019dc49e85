// Functions without a body, which main.go finds by their names, need a file of assembly in their package.
