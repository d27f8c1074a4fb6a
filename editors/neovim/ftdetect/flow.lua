-- Files whose names end in .flow are flows.
vim.filetype.add({ extension = { flow = "flow" } })
