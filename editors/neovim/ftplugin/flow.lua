vim.bo.commentstring = "// %s"
vim.bo.comments = "://!,:///,://"
vim.bo.expandtab = true
vim.bo.shiftwidth = 4
vim.bo.tabstop = 4
vim.bo.suffixesadd = ".flow"
