import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    id: page
    property string needle: ""
    ColumnLayout {
        anchors { fill: parent; margins: 16 }
        spacing: 12
        Text { text: "Policy"; color: look.c.text; font.pixelSize: 20; font.bold: true }
        Text {
            text: "What may run without asking. Changes hold at once, here and in every server that listens to this window. The file is " + app.policyPath
            color: look.c.text_soft
            wrapMode: Text.Wrap
            Layout.fillWidth: true
        }
        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            Field { id: command; objectName: "ruleCommand"; placeholderText: "git status, or make *"; Layout.fillWidth: true; font.family: "monospace" }
            Choice { id: modes; model: ["both", "interactive", "headless"]; implicitWidth: 130 }
            Field { id: comment; placeholderText: "why"; Layout.preferredWidth: 180 }
            PlainButton {
                objectName: "addRule"
                text: "Allow"
                primary: true
                enabled: command.text.trim() !== ""
                onClicked: { app.addRule(command.text.trim(), modes.currentText, comment.text); command.clear(); comment.clear() }
            }
        }
        Text { visible: command.text !== ""; text: app.preview(command.text); color: look.c.text_soft; font.pixelSize: 12 }
        RowLayout {
            Layout.fillWidth: true
            spacing: 8
            Text { text: "Folders that commands may run in"; color: look.c.text }
            Field { id: roots; text: app.roots; placeholderText: "any"; Layout.fillWidth: true; font.family: "monospace"; onAccepted: app.setRoots(text) }
            PlainButton { text: "Apply"; onClicked: app.setRoots(roots.text) }
            Text { text: "Theme"; color: look.c.text }
            Choice { model: ["system", "dark", "light"]; currentIndex: Math.max(0, ["system", "dark", "light"].indexOf(look.chosen)); onActivated: look.chosen = currentText; implicitWidth: 110 }
        }
        Field { placeholderText: "Filter rules"; Layout.preferredWidth: 260; onTextChanged: page.needle = text }
        ListView {
            id: list
            objectName: "ruleList"
            Layout.fillWidth: true
            Layout.fillHeight: true
            clip: true
            model: app.ruleModel
            ScrollBar.vertical: ScrollBar { }
            delegate: Rectangle {
                id: row
                required property string command
                required property string effect
                required property string modes
                required property string scope
                required property string comment
                required property bool shipped
                readonly property bool shown: page.needle === "" || command.includes(page.needle)
                visible: shown
                width: ListView.view.width - 12
                height: shown ? 32 : 0
                radius: 6
                color: hover.hovered ? look.c.hover : "transparent"
                HoverHandler { id: hover }
                RowLayout {
                    anchors { fill: parent; leftMargin: 8; rightMargin: 8 }
                    spacing: 12
                    Text { text: row.effect; color: row.effect === "allow" ? look.c.running : look.c.failed; font.bold: true; Layout.preferredWidth: 44 }
                    Text { text: row.command; textFormat: Text.PlainText; color: look.c.text; font.family: "monospace"; Layout.preferredWidth: 240; elide: Text.ElideRight }
                    Text { text: row.modes; color: look.c.text_soft; Layout.preferredWidth: 80 }
                    Text { text: [row.scope, row.comment].filter(Boolean).join("   "); textFormat: Text.PlainText; color: look.c.text_soft; elide: Text.ElideRight; Layout.fillWidth: true }
                    Text { visible: row.shipped; text: "shipped"; color: look.c.text_soft; font.pixelSize: 12 }
                    PlainButton { visible: !row.shipped && hover.hovered; text: "Remove"; danger: true; onClicked: app.removeRule(row.command) }
                }
            }
        }
    }
    component Field: TextField {
        id: field
        implicitHeight: 28
        topPadding: 4
        bottomPadding: 4
        leftPadding: 10
        color: look.c.text
        placeholderTextColor: look.c.text_soft
        background: Rectangle { radius: 6; color: look.c.sunken; border.color: field.activeFocus ? look.c.accent : look.c.edge }
    }
}
