-- Files whose names end in .flow are flows. Before 0.8 `vim.filetype` is there, but not in use.
if vim.fn.has("nvim-0.8") == 1 then
  vim.filetype.add({ extension = { flow = "flow" } })
else
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
    pattern = "*.flow",
    command = "setfiletype flow",
  })
end
